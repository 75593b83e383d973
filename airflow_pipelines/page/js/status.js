/** The state of a pipeline in a word, a tone and a sign, so that colour never stands alone. */

const STATES = {
  Running: ["Running", "ok"],
  Paused: ["Paused", "idle"],
  Standby: ["Standby", "idle"],
  Suspended: ["Suspended", "idle"],
  Stopped: ["Stopped", "idle"],
  Stopping: ["Stopping", "busy"],
  Suspending: ["Stopping", "busy"],
  Provisioning: ["Starting", "busy"],
  Preparing: ["Starting", "busy"],
  Initializing: ["Starting", "busy"],
  Bootstrapping: ["Evaluating views", "busy"],
  ConcurrentBootstrapping: ["Evaluating views", "busy"],
  Synchronizing: ["Synchronizing", "busy"],
  Replaying: ["Recovering", "busy"],
  AwaitingApproval: ["Awaiting approval", "warn"],
  Unavailable: ["Unavailable", "bad"],
};

const PROGRAM_ERRORS = new Set(["SqlError", "RustError", "SystemError"]);
const COMPILING = new Set(["Pending", "CompilingSql", "SqlCompiled", "CompilingRust"]);

/** What needs a person first. */
export const URGENCY = { bad: 0, warn: 1, busy: 2, ok: 3, idle: 4 };

/**
 * @param {{status: string, programStatus: string, error: ?string, waits: boolean}} pipeline
 * @returns {{word: string, tone: string}} what to show
 */
export function stateOf(pipeline) {
  const [word, tone] = STATES[pipeline.status] ?? [pipeline.status || "Unknown", "busy"];
  const isStopped = pipeline.status === "Stopped";
  if (isStopped && PROGRAM_ERRORS.has(pipeline.programStatus)) return { word: "Does not compile", tone: "bad" };
  if (pipeline.error && isStopped) return { word: "Failed", tone: "bad" };
  if (isStopped && COMPILING.has(pipeline.programStatus)) return { word: "Compiling", tone: "busy" };
  if (pipeline.error) return { word, tone: "bad" };
  return { word, tone };
}

/** Whether a pipeline has a host, so that it has statistics. */
export const isUp = (status) => !["Stopped", "Stopping", "Provisioning", "AwaitingApproval", "", null, undefined].includes(status);
