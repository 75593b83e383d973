/** The page of one pipeline: what it is doing, and the change that waits, on the same picture. */

import { html, useCallback, useEffect, useMemo, useState } from "./html.js";
import { answerReview } from "./api.js";
import { Change } from "./change.js";
import { Checkpoints } from "./checkpoints.js";
import { Details, endpointProblem, worstLag } from "./details.js";
import { Events } from "./events.js";
import { figuresOf } from "./figures.js";
import { age, brief, bytes, exact, moment, rate, share, uuidMoment, whole } from "./format.js";
import { Graph } from "./graph.js";
import { Icon, StatePill } from "./icons.js";
import { lag } from "./list.js";
import { Logs } from "./logs.js";
import { OutsideLink } from "./outside.js";
import { isFor, whyOvertaken } from "./overtaken.js";
import { effectsIn, pictureOf, withChange } from "./picture.js";
import { useNow, usePolled } from "./polling.js";
import { compilerMessages, Program } from "./program.js";
import { LIST } from "./route.js";
import { Empty, Loading, PipelineError, Problem, Stale } from "./states.js";
import { isUp, stateOf } from "./status.js";
import { Steps } from "./steps.js";

const STATUS_MS = 2000;
const FIGURES_MS = 2000;
const SESSION_MS = 0;
const TABS = ["logs", "events", "checkpoints", "program"];
const NO_HEALTH = new Map();

/**
 * @param {Object} properties
 * @param {string} properties.name the pipeline
 * @param {?string} properties.view the part to show first
 * @param {import("./api.js").Pipelines} properties.service
 * @param {"service"|"airflow"} properties.face
 * @param {Array<Object>} properties.reviews what waits in Airflow for this pipeline, the newest first
 * @param {function(): void} properties.onDecided an answer was given
 * @param {function(Error): void} properties.onKeyError
 */
export function PipelinePage({ name, view, service, face, reviews, onDecided, onKeyError, theme }) {
  const key = [service.connection.api, name];
  const now = useNow();
  const status = usePolled((signal) => service.status(name, signal), STATUS_MS, key);
  const version = status.data && `${status.data.id} ${status.data.program_version} ${status.data.program_status}`;
  const program = usePolled(version ? (signal) => service.descriptor(name, signal) : null, 0, [...key, version]);
  const isFed = isUp(status.data?.deployment_status);
  const figures = usePolled(isFed ? (signal) => loadFigures(service, name, signal) : null, FIGURES_MS, [...key, isFed]);
  const session = usePolled(face === "service" ? service.session : null, SESSION_MS, [service.connection.api]);
  const [notice, setNotice] = useState(null);
  const failure = status.error ?? program.error;
  if (failure?.kind === "key") onKeyError(failure);

  if (!status.data) return html`<main class="page"><${Crumbs} name=${name} />${status.error ? html`<${NotShown} error=${status.error} onRetry=${status.reload} />` : html`<${Loading} what=${`pipeline ${name}`} />`}</main>`;
  const descriptor = { ...program.data, ...status.data };
  const state = stateOf({ status: descriptor.deployment_status, programStatus: descriptor.program_status, error: descriptor.deployment_error });
  const pending = descriptor.deployment_status === "AwaitingApproval" ? pendingOf(descriptor) : null;
  const review = reviews.find((each) => pending && isFor(each, pending)) ?? reviews[0] ?? null;
  const change = pending ?? review?.change ?? null;
  const overtaken = (each) => whyOvertaken(each, review, { ...status.data, status: status.data.deployment_status });
  return html`<main class="page pipeline-page">
    <${Crumbs} name=${name} connection=${face === "airflow" ? service.connection.label : null} />
    ${status.error && html`<${Stale} error=${status.error} at=${status.at} now=${now} onRetry=${status.reload} />`}
    <${Head} descriptor=${descriptor} state=${state} figures=${figures.data} now=${now} />
    ${notice && html`<div class="banner tone-ok" role="status"><${Icon} name="ok" /><div>${notice}</div></div>`}
    <${Errors} descriptor=${descriptor} figures=${figures} isFed=${isFed} />
    ${!program.data
      ? program.error ? html`<${Problem} title="The program cannot be shown" error=${program.error} onRetry=${program.reload} />` : html`<${Loading} what="the program" />`
      : html`<${Picture} service=${service} name=${name} descriptor=${descriptor} figures=${figures.data} change=${change} isPending=${pending !== null} view=${view} />`}
    ${change && html`<${Change} change=${change} isRunning=${pending === null}
      decision=${{ face, review, overtaken: review && overtaken(review), obstacle: obstacleOf(face, session.data), decide: decider(face, service, name, review), onDone: (text) => { setNotice(text); status.reload(); onDecided(); } }} />`}
    <${Overtaken} reviews=${change ? reviews.filter((each) => each !== review) : reviews} why=${overtaken} />
    ${isFed && html`<section class="card"><${Steps} steps=${figures.data?.steps ?? null} activity=${figures.data?.activity ?? null} theme=${theme} /></section>`}
    <${Tabs} view=${view} service=${service} name=${name} descriptor=${descriptor} isFed=${isFed} now=${now} />
  </main>`;
}

/** What a running pipeline says of itself. A part that it cannot say yet is null, and why. */
async function loadFigures(service, name, signal) {
  const [activity, stats, steps] = await Promise.allSettled([service.activity(name, signal), service.stats(name, signal), service.steps(name, signal)]);
  const all = [activity, stats, steps];
  if (all.every(({ status }) => status === "rejected")) throw stats.reason;
  const [first, second, third] = all.map(({ value }) => value ?? null);
  return { activity: first, stats: second, steps: third, problem: all.find(({ reason }) => reason)?.reason ?? null };
}

function pendingOf(descriptor) {
  const details = descriptor.deployment_runtime_status_details;
  return details?.approval_diff ? details : null;
}

const obstacleOf = (face, session) =>
  face === "service" && session && session.role !== "write" ? "This API key may only read. Approving takes one with the role “write”." : null;

function decider(face, service, name, review) {
  return async (option, change) => {
    if (face === "airflow") await answerReview(review, option);
    else if (option === "approve") await service.approve(name, change.programs);
    else await service.stop(name);
  };
}

/** Requests that wait in Airflow and can do nothing any more. */
function Overtaken({ reviews, why }) {
  if (reviews.length === 0) return null;
  return html`<section class="card overtaken" aria-labelledby="overtaken-title"><header><h2 id="overtaken-title"><${Icon} name="warn" />Overtaken requests</h2></header>
    <ul>${reviews.map((review) => html`<li><code>${review.task_id}</code> of DAG <code>${review.dag_id}</code>, run <code>${review.run_id}</code>, since ${exact(review.created_at)}: ${why(review)}
      An approval does nothing. <${OutsideLink} path=${review.page}>Reject it in Airflow<//></li>`)}</ul></section>`;
}

function Crumbs({ name, connection }) {
  return html`<nav class="crumbs" aria-label="Where you are"><a href=${LIST}><${Icon} name="back" />All pipelines</a>
    ${connection && html`<span class="muted">${connection}</span>`}</nav>
    <h1 class="visually-hidden">Pipeline ${name}</h1>`;
}

function NotShown({ error, onRetry }) {
  const title = error.status === 404 ? "There is no such pipeline" : error.kind === "forbidden" ? "You may not see this pipeline" : "The pipeline cannot be shown";
  return html`<${Problem} title=${title} error=${error} onRetry=${onRetry} />`;
}

function Head({ descriptor, state, figures, now }) {
  const since = moment(descriptor.deployment_status_since);
  const metrics = figures?.stats?.global_metrics;
  const means = figuresOf(figures?.activity);
  const newest = (descriptor.storage_status_details?.checkpoints ?? []).map(({ uuid }) => uuidMoment(uuid)).filter(Boolean).sort().at(-1) ?? null;
  const synced = moment(descriptor.storage_status_details?.last_sync?.synced_at);
  const facts = [
    ["Rows", metrics && rate(means.rowsPerSecond)],
    ["Lag", metrics && lag(worstLag(figures.stats))],
    ["Processed", metrics && html`<span title=${whole(metrics.total_processed_records)}>${brief(metrics.total_processed_records)} rows</span>`],
    ["In steps", metrics && share(means.busy)],
    ["Memory of the host", metrics && bytes(metrics.rss_bytes)],
    ["Stored", metrics && bytes(metrics.storage_bytes)],
    ["Checkpoint", newest ? html`<span title=${exact(newest)}>${age(newest, now)} ago</span>` : "none"],
    ["Sync", synced && html`<span title=${exact(synced)}>${age(synced, now)} ago</span>`],
  ].filter(([, value]) => value);
  return html`<section class="head">
    <div class="title"><h1 aria-hidden="true">${descriptor.name}</h1><${StatePill} state=${state} /><span class="muted" title=${exact(since)}>for ${age(since, now)}</span>
      ${descriptor.deployment_status !== descriptor.deployment_desired_status && descriptor.deployment_status !== "AwaitingApproval" && html`<span class="muted">on its way to ${descriptor.deployment_desired_status}</span>`}
      ${(descriptor.tags ?? []).map((tag) => html`<span class="chip">${tag}</span>`)}</div>
    ${descriptor.description && html`<p class="description">${descriptor.description}</p>`}
    <dl class="facts">${facts.map(([term, value]) => html`<div><dt>${term}</dt><dd>${value}</dd></div>`)}</dl>
  </section>`;
}

function Errors({ descriptor, figures, isFed }) {
  const warnings = figures.data?.stats?.warnings ?? [];
  const failure = figures.error ?? figures.data?.problem;
  return html`
    ${descriptor.deployment_error && html`<${PipelineError} title="The pipeline failed" message=${descriptor.deployment_error.message} />`}
    ${compilerMessages(descriptor).map((text) => html`<${PipelineError} title="The program does not compile" message=${text} />`)}
    ${isFed && failure && html`<div class="banner tone-warn" role="status"><${Icon} name="warn" /><div>${failure.message}</div></div>`}
    ${warnings.map((text) => html`<div class="banner tone-warn"><${Icon} name="warn" /><div>${text}</div></div>`)}`;
}

function Picture({ service, name, descriptor, figures, change, isPending, view }) {
  const [selected, setSelected] = useState(null);
  const [isLive, setLive] = useState(false);
  const hasStreams = Boolean(descriptor.stream_files);
  const streams = usePolled(hasStreams ? (signal) => service.streamGraph(name, signal) : null, 0, [service.connection.api, name, descriptor.program_version, descriptor.program_status]);
  const info = descriptor.program_info;
  const bare = useMemo(() => pictureOf(info, streams.data ?? null), [info, streams.data]);
  // The change is compared by what it says: it comes anew with each answer.
  const changeText = change ? JSON.stringify(change) : null;
  const changed = useMemo(() => (changeText ? withChange(bare, JSON.parse(changeText)) : null), [bare, changeText]);
  const isChange = changed !== null && !isLive && effectsIn(changed);
  const picture = isChange ? changed : bare;
  const means = useMemo(() => figuresOf(figures?.activity), [figures?.activity]);
  const health = useMemo(() => healthOf(figures?.stats), [figures?.stats]);
  const select = useCallback((id) => setSelected((before) => (before === id ? null : id)), []);
  useEffect(() => { if (view === "graph") setLive(true); }, [view]);

  if (picture.nodes.length === 0) {
    return html`<section class="card"><${Empty} title="No graph">${info ? "The program declares no table and no view." : "The graph is known when the program is compiled."}<//></section>`;
  }
  const node = picture.nodes.find(({ id }) => id === selected) ?? null;
  return html`<section class="card picture" aria-label="Graph">
    ${changed && html`<div class="switch" role="group" aria-label="What the graph shows">
      <button type="button" aria-pressed=${String(!isLive)} onClick=${() => setLive(false)}>With the change</button>
      <button type="button" aria-pressed=${String(isLive)} onClick=${() => setLive(true)}>${isPending ? "New program" : "Running program"}</button></div>`}
    <div class=${node ? "picture-body with-details" : "picture-body"}>
      <${Graph} picture=${picture} figures=${means} health=${health} selected=${selected} onSelect=${select} isChange=${isChange} />
      ${node && html`<${Details} node=${node} figures=${means} endpoint=${endpointOf(figures?.stats, node)} relation=${relationOf(info, node)} recomputed=${recomputedOf(info, node)}
        operator=${figures?.stats?.stream_metrics?.[node.uid] ?? null} onClose=${() => setSelected(null)} />`}
    </div></section>`;
}

function healthOf(stats) {
  if (!stats) return NO_HEALTH;
  const entries = (kind, list) => (list ?? []).map((endpoint) => [`${kind}:${endpoint.endpoint_name}`, { problem: endpointProblem(endpoint), isPaused: Boolean(endpoint.paused) }]);
  return new Map([...entries("input", stats.inputs), ...entries("output", stats.outputs)]);
}

const endpointOf = (stats, node) =>
  (node.kind === "input" ? stats?.inputs : node.kind === "output" ? stats?.outputs : null)?.find(({ endpoint_name: name }) => name === node.name) ?? null;

const relationOf = (info, node) =>
  node.kind === "table" || node.kind === "view" ? [...(info?.schema?.inputs ?? []), ...(info?.schema?.outputs ?? [])].find(({ name }) => name === node.relation) ?? null : null;

const recomputedOf = (info, node) => (node.kind === "view" ? (info?.recomputed ?? []).filter(({ view }) => view === node.relation) : []);

function Tabs({ view, service, name, descriptor, isFed, now }) {
  const [tab, setTab] = useState(TABS.includes(view) ? view : "logs");
  useEffect(() => { if (TABS.includes(view)) setTab(view); }, [view]);
  const go = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length];
    setTab(next);
    document.getElementById(`tab-${next}`).focus();
  };
  const parts = { service, name, descriptor, now };
  return html`<section class="card tabs">
    <div role="tablist" aria-label="More of the pipeline" onKeyDown=${go}>${TABS.map(
      (each) => html`<button type="button" role="tab" id=${`tab-${each}`} aria-selected=${String(tab === each)} aria-controls="tab-panel" tabindex=${tab === each ? 0 : -1} onClick=${() => setTab(each)}>${each}</button>`,
    )}</div>
    <div role="tabpanel" id="tab-panel" aria-labelledby=${`tab-${tab}`}>
      ${tab === "logs" && html`<${Logs} service=${service} name=${name} />`}
      ${tab === "events" && html`<${Events} ...${parts} />`}
      ${tab === "checkpoints" && html`<${Checkpoints} ...${parts} isUp=${isFed} />`}
      ${tab === "program" && html`<${Program} descriptor=${descriptor} />`}
    </div></section>`;
}
