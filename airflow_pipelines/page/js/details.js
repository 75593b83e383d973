/** What is known of one node of the graph. */

import { html } from "./html.js";
import { bytes, clock, counted, millis, moment, rate, share, UNKNOWN, whole } from "./format.js";
import { costLine, effectWord, KIND_WORDS } from "./graph_node.js";
import { Icon } from "./icons.js";
import { lag } from "./list.js";

/** The name under which the time of a stream program is counted. */
const STREAM_PROGRAM = "stream program";

/**
 * @param {Object} properties
 * @param {Object} properties.node
 * @param {Object} properties.figures what the newest samples say
 * @param {?Object} properties.endpoint the statistics of a connector
 * @param {?Object} properties.relation the relation as `program_info.schema` has it
 * @param {Array} properties.recomputed the parts of the view that `program_info.recomputed` lists
 * @param {?Object} properties.operator what an operator of the stream program says of itself
 * @param {function(): void} properties.onClose
 */
export function Details({ node, figures, endpoint, relation, recomputed, operator, onClose }) {
  return html`<aside class="details" aria-label=${`Details of ${node.name}`}>
    <header><div><span class="muted">${KIND_WORDS[node.kind]}</span><h3>${node.name}</h3></div>
      <button type="button" class="quiet" aria-label="Close details" onClick=${onClose}><${Icon} name="close" /></button></header>
    <dl>${facts(node, figures, endpoint, operator).map(([term, value]) => html`<dt>${term}</dt><dd>${value}</dd>`)}</dl>
    ${endpoint && html`<${EndpointErrors} endpoint=${endpoint} />`}
    ${recomputed.length > 0 && html`<${Recomputed} parts=${recomputed} />`}
    ${node.states?.length > 0 && html`<h4>States</h4><ul class="columns">${node.states.map((state) => html`<li><code>${state.name}</code> <span class="muted">${[state.kind, state.type].filter(Boolean).join(" of ")}</span></li>`)}</ul>`}
    ${relation && html`<h4>Columns</h4><ul class="columns">${relation.fields.map((field) => html`<li><code>${field.name}</code> <span class="muted">${typeText(field.columntype)}${
      relation.primary_key?.includes(field.name) ? " · key" : ""}</span></li>`)}</ul>`}
  </aside>`;
}

/** Why parts of a view are computed anew when something changes, and where the program asks for that. */
function Recomputed({ parts }) {
  return html`<h4>Recomputed</h4><ul class="columns">${parts.map(({ message, expression, start_line_number: line }) => html`<li>${message}${
    expression && html`: <code>${expression}</code>`}${line > 0 && html` <span class="muted">line ${line}</span>`}</li>`)}</ul>`;
}

function facts(node, figures, endpoint, operator) {
  const known = [];
  const add = (term, value) => value !== null && value !== undefined && value !== UNKNOWN && known.push([term, value]);
  if (node.effect) add("Change", effectWord(node));
  if (node.effect && costLine(node)) add("Cost", costLine(node));
  if (node.kind === "table" || node.kind === "view") {
    add("Changes", rate(figures.relations[node.relation]));
    if (node.kind === "view") add("Share of time", share(figures.shares[node.relation]));
    add("Contents", node.isMaterialized ? "kept, can be queried" : "not kept for queries");
  }
  if (node.transport) add("Transport", html`<code>${node.transport}</code>`);
  if (endpoint) endpointFacts(add, node, figures, endpoint);
  if (node.kind === "operator") {
    add("Does", node.does);
    add("Share of time", figures.shares[STREAM_PROGRAM] === undefined ? null : `${share(figures.shares[STREAM_PROGRAM])}, all operators together`);
    add("uid", html`<code>${node.uid}</code>`);
    const tasks = operator?.tasks ?? [];
    if (tasks.length) {
      add("Tasks", whole(tasks.length));
      add("State", bytes(tasks.reduce((sum, task) => sum + (task.state_bytes ?? 0), 0)));
      const marks = tasks.map((task) => task.watermark).filter((mark) => mark !== null && mark !== undefined);
      if (marks.length) add("Watermark", clock(Math.min(...marks)));
    }
  }
  return known;
}

function endpointFacts(add, node, figures, { metrics, health, paused, completed_frontier: frontier }) {
  add("Health", health?.status);
  if (paused) add("Paused", "yes");
  if (node.kind === "input") {
    add("Rows", rate(figures.inputs[node.name]));
    add("Received", `${whole(metrics.total_records)} rows, ${bytes(metrics.total_bytes)}`);
    add("Waiting", metrics.buffered_records ? `${whole(metrics.buffered_records)} rows` : null);
    if (metrics.lag) add("Lag", lag(metrics.lag));
    if (metrics.processing_latency_p99_micros) add("Latency, 99 %", millis(metrics.processing_latency_p99_micros / 1000));
    if (metrics.end_of_input) add("Input", "has ended");
    add("Done up to", clock(moment(frontier?.completed_at)));
  } else {
    add("Rows", rate(figures.outputs[node.name]));
    add("Sent", `${whole(metrics.transmitted_records)} rows, ${bytes(metrics.transmitted_bytes)}`);
    add("Waiting", metrics.queued_records ? `${whole(metrics.queued_records)} rows` : null);
  }
}

const LISTS = ["transport_errors", "parse_errors", "encode_errors"];

function EndpointErrors({ endpoint }) {
  const known = endpoint.fatal_error ?? null;
  const errors = LISTS.flatMap((list) => endpoint[list] ?? []).filter(({ message }) => message !== known).sort((one, other) => other.timestamp.localeCompare(one.timestamp));
  const total = (endpoint.metrics.num_transport_errors ?? 0) + (endpoint.metrics.num_parse_errors ?? 0) + (endpoint.metrics.num_encode_errors ?? 0);
  const isUnhealthy = endpoint.health?.status === "Unhealthy";
  if (!endpoint.fatal_error && !isUnhealthy && total === 0) return null;
  return html`<h4 class="tone-bad"><${Icon} name="bad" />${total ? counted(total, "error") : "Unhealthy"}</h4>
    ${(endpoint.fatal_error || isUnhealthy) && html`<p class="message">${endpoint.fatal_error ?? endpoint.health.description}</p>`}
    <ol class="errors">${errors.slice(0, 20).map((error) => html`<li><time class="muted">${clock(moment(error.timestamp))}</time> ${error.message}</li>`)}</ol>`;
}

function typeText(type) {
  if (!type) return "";
  const size = type.precision === null || type.precision === undefined ? "" : `(${[type.precision, type.scale].filter((part) => part !== null && part !== undefined).join(", ")})`;
  const inner = type.component ? ` of ${typeText(type.component)}` : "";
  return `${type.type ?? "ROW"}${size}${inner}${type.nullable === false ? " NOT NULL" : ""}`;
}

/** What is wrong with a connector, in a sentence; null when nothing is. */
export function endpointProblem(endpoint) {
  if (endpoint.fatal_error) return endpoint.fatal_error;
  if (endpoint.health?.status === "Unhealthy") return endpoint.health.description ?? "unhealthy";
  const { num_transport_errors: transport, num_parse_errors: parse, num_encode_errors: encode } = endpoint.metrics ?? {};
  const errors = (transport ?? 0) + (parse ?? 0) + (encode ?? 0);
  return errors ? counted(errors, "error") : null;
}

/** How long ago the newest rows of all inputs were done with, or null. */
export const worstLag = (stats) => {
  const lags = (stats?.inputs ?? []).map((input) => input.metrics?.lag).filter(Boolean);
  if (lags.length === 0) return null;
  const worst = (part) => {
    const values = lags.map((each) => each[part]).filter((value) => value !== null && value !== undefined);
    return values.length ? Math.max(...values) : null;
  };
  return { records: worst("records"), bytes: worst("bytes"), seconds: worst("seconds") };
};

