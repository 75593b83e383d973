/** All pipelines: how each of them is, and what needs a person. */

import { classes, html, memo, useMemo, useState } from "./html.js";
import { brief, briefAge, bytes, counted, duration, exact, rate, UNKNOWN, whole } from "./format.js";
import { Icon, StatePill } from "./icons.js";
import { reviewsOf, whyOvertaken } from "./overtaken.js";
import { usePolled, useNow } from "./polling.js";
import { pipelineRoute } from "./route.js";
import { Sparkline } from "./sparkline.js";
import { Empty, Loading, Problem, Stale } from "./states.js";
import { stateOf, URGENCY } from "./status.js";

const EVERY_MS = 3000;
const OLD_CHECKPOINT_S = 24 * 3600;

/**
 * @param {Object} properties
 * @param {Array<import("./api.js").Pipelines>} properties.services one for each connection
 * @param {Array<Object>} properties.reviews what waits in Airflow
 * @param {function(Error): void} properties.onKeyError the service does not take the key
 */
export function List({ services, reviews, onKeyError }) {
  const [wanted, setWanted] = useState("");
  const isMany = services.length > 1;
  return html`<main class="page list-page">
    <div class="toolbar">
      <h1>Pipelines</h1>
      <label class="filter"><span class="visually-hidden">Filter by name, description, state or tag</span>
        <input type="search" placeholder="Filter by name, state or tag" value=${wanted} onInput=${(event) => setWanted(event.target.value)} /></label>
    </div>
    ${services.map((service) => html`<${Connection} key=${service.connection.api} service=${service} hasHeading=${isMany} wanted=${wanted}
      reviews=${reviews.filter((review) => review.connection === service.connection.id)} onKeyError=${onKeyError} />`)}
  </main>`;
}

function Connection({ service, hasHeading, wanted, reviews, onKeyError }) {
  const { problem, label } = service.connection;
  const { data, error, at, reload } = usePolled(problem ? null : service.overview, EVERY_MS, [service.connection.api]);
  const now = useNow();
  const rows = useMemo(() => rowsOf(data, reviews, service.connection.id, wanted), [data, reviews, service.connection.id, wanted]);
  if (error?.kind === "key") onKeyError(error);
  const heading = hasHeading && html`<h2 class="connection">${label}</h2>`;
  if (problem) return html`${heading}<${Problem} title="This connection cannot be used" error=${{ message: problem }} />`;
  if (!data) {
    return error
      ? html`${heading}<${Problem} title=${error.kind === "session" ? "You are not logged in any more" : "The pipelines cannot be shown"} error=${error} onRetry=${reload} />`
      : html`${heading}<${Loading} what="pipelines" />`;
  }
  const serverNow = data.now + (now - at);
  return html`${heading}
    ${error && html`<${Stale} error=${error} at=${at} now=${now} onRetry=${reload} />`}
    <${Counts} rows=${rows} />
    ${data.pipelines.length === 0
      ? html`<${Empty} title="No pipelines yet">Deploy one from a DAG with DeployPipelineOperator, or with <code>airflow-pipelines run program.sql --name NAME</code>.<//>`
      : rows.length === 0
        ? html`<${Empty} title="No pipeline matches">The filter “${wanted}” leaves none of ${counted(data.pipelines.length, "pipeline")}.<//>`
        : html`<${Table} rows=${rows} connection=${service.connection.id} now=${serverNow} />`}`;
}

function rowsOf(data, reviews, connection, wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  return (data?.pipelines ?? [])
    .map((pipeline) => {
      const state = stateOf({ status: pipeline.status, programStatus: pipeline.program_status, error: pipeline.error });
      const waiting = reviewsOf(reviews, connection, pipeline.name);
      const review = waiting[0] ?? null;
      const overtaken = review && whyOvertaken(review, review, pipeline);
      const attention = review && !overtaken && state.tone !== "bad" ? URGENCY.warn : URGENCY[state.tone];
      return { pipeline, state, review, overtaken, attention: hasErrors(pipeline) ? Math.min(attention, URGENCY.warn) : attention };
    })
    .filter(({ pipeline, state }) => {
      const text = [pipeline.name, pipeline.description, state.word, ...(pipeline.tags ?? [])].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .sort((one, other) => one.attention - other.attention || one.pipeline.name.localeCompare(other.pipeline.name));
}

const hasErrors = ({ figures }) => (figures?.connector_errors ?? 0) > 0 || (figures?.unhealthy_connectors ?? []).length > 0;

function Counts({ rows }) {
  const counts = new Map();
  for (const { state } of rows) counts.set(state.word, { tone: state.tone, number: (counts.get(state.word)?.number ?? 0) + 1 });
  return html`<p class="counts" aria-live="polite">${[...counts].map(
    ([word, { tone, number }]) => html`<span class=${`count tone-${tone}`}><${Icon} name=${tone} />${number} ${word.toLowerCase()}</span>`,
  )}</p>`;
}

function Table({ rows, connection, now }) {
  return html`<div class="scrolls"><table class="pipelines">
    <thead><tr>
      <th scope="col">Pipeline</th><th scope="col">State</th><th scope="col">Rows/s, 5 min</th>
      <th scope="col" class="right">Lag</th><th scope="col" class="right">Checkpoint</th><th scope="col" class="right">Sync</th><th scope="col" class="right">Errors</th>
    </tr></thead>
    <tbody>${rows.map((row) => html`<${Row} key=${row.pipeline.id} ...${row} connection=${connection} second=${Math.floor(now / 1000)} />`)}</tbody>
  </table></div>`;
}

const Row = memo(function Row({ pipeline, state, review, overtaken, connection, second }) {
  const now = second * 1000;
  const { figures, checkpoint, sync, error } = pipeline;
  const waits = pipeline.status === "AwaitingApproval" || review;
  const route = pipelineRoute(pipeline.name, connection, waits ? "change" : null);
  return html`<tr class=${classes(waits && "waits")}>
    <th scope="row"><a href=${route}>${pipeline.name}</a>${(pipeline.tags ?? []).map((tag) => html`<span class="chip">${tag}</span>`)}
      ${pipeline.description && html`<div class="description" title=${pipeline.description}>${pipeline.description}</div>`}</th>
    <td><${StatePill} state=${state} /> <span class="muted since" title=${exact(pipeline.status_since)}>${briefAge(pipeline.status_since, now)}</span>
      ${review && pipeline.status !== "AwaitingApproval" && html`<div class="note tone-warn"><${Icon} name="warn" />${overtaken ? "A request for approval was overtaken" : "A change waits for approval"}</div>`}
      ${error && html`<div class="error-line" title=${error.message}>${error.message}</div>`}</td>
    <td>${figures
      ? html`<div class="rates"><${Sparkline} values=${figures.sparkline?.rows_per_second} label=${`Rows in a second of ${pipeline.name}`} /><span class="figure">${rate(figures.rows_per_second)}</span></div>`
      : html`<span class="muted">${UNKNOWN}</span>`}</td>
    <td class="right">${shortLag(figures?.lag)}</td>
    <td class="right" title=${checkpoint ? `${exact(checkpoint.at)}, ${bytes(checkpoint.size)}, ${whole(checkpoint.steps)} steps` : ""}>
      ${checkpoint ? html`<span class=${classes((now - checkpoint.at) / 1000 > OLD_CHECKPOINT_S && figures && "tone-warn")}>${briefAge(checkpoint.at, now)}</span>` : html`<span class="muted">none</span>`}</td>
    <td class="right" title=${sync ? exact(sync.at) : ""}>${sync ? briefAge(sync.at, now) : html`<span class="muted">none</span>`}</td>
    <td class="right">${errors(pipeline)}</td>
  </tr>`;
});

/** How far the inputs are behind, in the units that they say it in. */
export function lag(value) {
  if (!value) return html`<span class="muted" title="No input says how far it is behind">${UNKNOWN}</span>`;
  const parts = [
    value.seconds !== null && value.seconds !== undefined && duration(value.seconds),
    value.records !== null && value.records !== undefined && `${brief(value.records)} rows`,
    (value.records === null || value.records === undefined) && value.bytes !== null && value.bytes !== undefined && bytes(value.bytes),
  ].filter(Boolean);
  return parts.length ? parts.join(" · ") : UNKNOWN;
}

/** The part of it that says most, where there is little place. */
function shortLag(value) {
  const inSeconds = value?.seconds !== null && value?.seconds !== undefined;
  return inSeconds ? html`<span title=${value.records === null ? "" : `${whole(value.records)} rows`}>${duration(value.seconds)}</span>` : lag(value);
}

function errors({ figures, figures_problem: problem }) {
  if (problem) return html`<span class="tone-bad" title=${problem}><${Icon} name="bad" />no answer</span>`;
  if (!figures) return html`<span class="muted">${UNKNOWN}</span>`;
  const unhealthy = figures.unhealthy_connectors ?? [];
  if (!figures.connector_errors && unhealthy.length === 0) return html`<span class="muted">0</span>`;
  const title = unhealthy.length ? `Unhealthy: ${unhealthy.join(", ")}` : "Errors of connectors";
  return html`<span class="tone-bad" title=${title}><${Icon} name="bad" />${whole(Math.max(figures.connector_errors, unhealthy.length))}</span>`;
}
