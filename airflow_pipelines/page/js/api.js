/** The calls of the page. All are of its own origin, and relative to the page's own folder. */

const BASE = new URL(".", document.baseURI);
const KEY = "airflow-pipelines-key";
const LIMIT_MS = 15_000;

/** A call that was not answered as hoped: `kind` is what can be done about it. */
export class ApiError extends Error {
  /**
   * @param {string} message for people
   * @param {"network"|"key"|"session"|"forbidden"|"answer"} kind
   * @param {?number} status
   * @param {string} code the error's name
   */
  constructor(message, kind, status = null, code = "") {
    super(message);
    this.kind = kind;
    this.status = status;
    this.code = code;
  }
}

/** The API key of this tab: it is in no address, no cookie, and gone with the tab. */
export const apiKey = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

/** Which face the page has, and where its pipelines are. */
export const loadContext = (signal) => call("context", { signal });

/** The task instance that an address names, as Airflow's tab opens the page. */
export const loadTask = (search, signal) => call(`task${search}`, { signal });

/** The reviews that wait in Airflow. */
export const loadReviews = async (signal) => (await call("reviews", { signal })).reviews;

/**
 * Answer a review, as the person who is logged in to Airflow.
 * @param {{answer: string}} review which one
 * @param {string} option the option to choose
 */
export const answerReview = (review, option) =>
  call(review.answer, { method: "PATCH", body: { chosen_options: [option], params_input: {} } });

/** The pipelines of one connection. */
export class Pipelines {
  /**
   * @param {{id: ?string, label: string, api: string, problem: ?string}} connection
   * @param {boolean} takesKey whether the service is asked with the tab's key
   */
  constructor(connection, takesKey) {
    this.connection = connection;
    this.takesKey = takesKey;
  }

  overview = (signal) => this.#call("overview", { signal });

  session = (signal) => this.#call("config/session", { signal });

  descriptor = (name, signal) => this.#of(name, "", signal);

  status = (name, signal) => this.#of(name, "?selector=status", signal);

  activity = (name, signal) => this.#of(name, "/activity", signal);

  stats = (name, signal) => this.#of(name, "/stats?include_connector_errors=true", signal);

  steps = (name, signal) => this.#of(name, "/steps", signal);

  events = (name, signal) => this.#of(name, "/events?selector=all", signal);

  checkpoints = (name, signal) => this.#of(name, "/checkpoints", signal);

  syncStatus = (name, signal) => this.#of(name, "/checkpoint/sync_status", signal);

  streamGraph = (name, signal) => this.#of(name, "/stream_graph", signal);

  logLines = (name, after, limit, signal) =>
    this.#of(name, `/log_lines?limit=${limit}${after === null ? "" : `&after=${after}`}`, signal);

  /** Approve exactly the change between two programs. */
  approve = (name, programs) => this.#call(`pipelines/${encodeURIComponent(name)}/approve`, { method: "POST", body: { programs } });

  /** Stop, with a checkpoint where the pipeline has something to keep. */
  stop = (name) => this.#call(`pipelines/${encodeURIComponent(name)}/stop`, { method: "POST" });

  #of(name, rest, signal) {
    return this.#call(`pipelines/${encodeURIComponent(name)}${rest}`, { signal });
  }

  #call(path, options) {
    return call(`${this.connection.api}${path}`, { ...options, takesKey: this.takesKey });
  }
}

async function call(path, { method = "GET", body, takesKey = false, signal } = {}) {
  const headers = {};
  const key = takesKey ? apiKey.get() : null;
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const limit = AbortSignal.timeout(LIMIT_MS);
  let answer;
  try {
    answer = await fetch(new URL(path, BASE), {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      cache: "no-store",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    const why = error.name === "TimeoutError" ? `it did not answer within ${LIMIT_MS / 1000} s` : "no connection to it";
    throw new ApiError(`The service cannot be reached: ${why}`, "network");
  }
  const content = await contentOf(answer);
  if (answer.ok) return content;
  throw refusal(answer.status, content, takesKey);
}

async function contentOf(answer) {
  const text = await answer.text();
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

function refusal(status, content, takesKey) {
  const code = content?.error_code ?? "";
  const message = content?.message ?? detailOf(content) ?? `The service answered with status ${status}`;
  if (status === 401) return new ApiError(message, takesKey ? "key" : "session", status, code);
  if (status === 403) return new ApiError(message, "forbidden", status, code);
  return new ApiError(message, "answer", status, code);
}

/** What Airflow's own API says of an error. */
const detailOf = (content) => (typeof content?.detail === "string" ? content.detail : null);
