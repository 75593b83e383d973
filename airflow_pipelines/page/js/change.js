/** A change that waits: what it does to each relation and operator, and both programs side by side. */

import { classes, html, useState } from "./html.js";
import { bytes, counted, estimate, whole } from "./format.js";
import { entriesRead } from "./graph_node.js";
import { Icon } from "./icons.js";
import { Review } from "./review.js";
import { SideBySide } from "./side_by_side.js";

const WORDS = { added: "new", removed: "dropped", modified: "changed", connectors: "connectors", started_anew: "anew" };
const SIGNS = { added: "+", removed: "−", modified: "~", connectors: "~", started_anew: "↻" };
const ORDER = ["modified", "added", "removed", "connectors"];
/** So many declarations are shown at once; of more, those that somebody opens. */
const FEW = 20;
const ENTRIES = "Entries in storage, not rows: a row that has changed has several until they are merged, and what a view keeps besides its contents is counted, too.";
const TOUCHED = ["added", "modified", "removed"];

/** What a change comes to, in a sentence. */
export function summary(change) {
  const { plan } = change;
  if (!plan) return "The pipeline’s host does not tell what the change means for rows and times.";
  const numbers = new Map();
  for (const { change: what } of [...Object.values(plan.relations), ...(plan.operators ?? [])]) numbers.set(what, (numbers.get(what) ?? 0) + 1);
  const parts = [["modified", "changed"], ["added", "new"], ["removed", "dropped"], ["connectors", "with other connectors only"], ["started_anew", "without its state"]]
    .filter(([what]) => numbers.has(what))
    .map(([what, word]) => `${numbers.get(what)} ${word}`);
  const views = Object.keys(plan.evaluated).length;
  const cost = views ? `${counted(views, "view")} to evaluate anew from ${counted(plan.rows, "entry", "entries")} in storage, about ${estimate(plan)}` : "no view to evaluate anew";
  return `${parts.join(", ") || "Nothing that is declared differs"}; ${cost}.`;
}

/**
 * @param {Object} properties
 * @param {Object} properties.change what waits: `programs`, `plan`, `approval_diff`, `views_evaluated_anew`
 * @param {boolean} properties.isRunning whether the pipeline runs meanwhile
 * @param {Object} properties.decision what Review needs besides
 */
export function Change({ change, isRunning, decision }) {
  const { plan } = change;
  return html`<section class="card change" aria-labelledby="change-title">
    <header><h2 id="change-title"><${Icon} name="warn" />${decision.overtaken ? "A request for approval was overtaken" : "A change waits for approval"}</h2>
      <p>${summary(change)} ${decision.overtaken ? decision.overtaken : isRunning ? "The pipeline goes on with its program until then." : "The pipeline does not process anything until then."}</p></header>
    ${plan?.refusals.map((refusal) => html`<div class="banner tone-bad" role="alert"><${Icon} name="bad" /><div><strong>Refused: the pipeline does not start with it.</strong> ${refusal.message}</div></div>`)}
    <${Effects} change=${change} />
    <${Declarations} plan=${plan} isRunning=${isRunning} />
    <${Files} files=${plan?.files ?? []} />
    <${Programs} programs=${change.programs} />
    <${Review} key=${JSON.stringify(change.programs)} change=${change} ...${decision} />
  </section>`;
}

function Effects({ change }) {
  const rows = [...relationRows(change), ...connectorRows(change.approval_diff), ...anewRows(change), ...operatorRows(change.plan)];
  if (rows.length === 0) return html`<p class="muted">No relation, connector or operator is another one.</p>`;
  return html`<div class="scrolls"><table class="effects">
    <thead><tr><th scope="col">What</th><th scope="col">Change</th><th scope="col">What happens</th><th scope="col" class="right" title=${ENTRIES}>Entries read</th><th scope="col" class="right">About</th><th scope="col" class="right" title=${ENTRIES}>Entries dropped</th></tr></thead>
    <tbody>${rows.map(
      (row) => html`<tr><th scope="row"><span class="muted">${row.kind}</span> <code>${row.name}</code></th>
        <td><span class=${`effect effect-${WORDS[row.what]}`}>${SIGNS[row.what]} ${WORDS[row.what]}</span></td><td>${row.text}</td>
        <td class="right" title=${row.reads ?? ""}>${row.rows === undefined ? "" : whole(row.rows)}</td><td class="right">${row.estimate ?? ""}</td>
        <td class="right">${row.dropped === undefined ? "" : whole(row.dropped)}</td></tr>`,
    )}</tbody></table></div>`;
}

const RELATION_TEXTS = {
  "added table": "starts empty; its connectors start from the beginning",
  "modified table": "is emptied; its connectors start from the beginning",
  "removed table": "is dropped with its rows",
  "added view": "is computed from the tables’ rows",
  "modified view": "is computed anew; its full contents go to its outputs again",
  "removed view": "is dropped",
};

function relationRows({ plan }) {
  return Object.entries(plan?.relations ?? {})
    .sort(byOrder)
    .map(([name, relation]) => ({
      kind: relation.kind, name, what: relation.change,
      text: relationText(relation, plan.evaluated[name]),
      ...costs(plan, name),
    }));
}

function relationText({ change, kind }, evaluation) {
  if (change === "connectors") return "keeps its rows; only its connectors are others";
  if (kind === "view" && change !== "removed" && !evaluation) return "needs no evaluation: what is stored fits";
  return RELATION_TEXTS[`${change} ${kind}`];
}

function costs(plan, name) {
  const evaluation = plan.evaluated[name];
  return { rows: evaluation?.rows, estimate: evaluation && estimate(evaluation), reads: evaluation && entriesRead(evaluation.reads), dropped: plan.dropped[name] };
}

const byOrder = ([one, { change: first }], [other, { change: second }]) => ORDER.indexOf(first) - ORDER.indexOf(second) || one.localeCompare(other);

const CONNECTOR_TEXTS = {
  "added input": "starts from the beginning",
  "modified input": "starts from the beginning; rows that it delivered before stay",
  "removed input": "ends; rows that it delivered stay",
  "added output": "gets changes from now on, or a new view’s full contents",
  "modified output": "gets changes from now on, or a changed view’s full contents",
  "removed output": "ends",
};

function connectorRows(diff) {
  return ["input", "output"].flatMap((side) =>
    TOUCHED.flatMap((what) => (diff?.[`${what}_${side}_connectors`] ?? []).map((name) => ({ kind: side, name, what, text: CONNECTOR_TEXTS[`${what} ${side}`] }))),
  );
}

function anewRows({ plan, views_evaluated_anew: reasons }) {
  const named = new Set([...Object.keys(reasons ?? {}), ...Object.keys(plan?.evaluated ?? {})]);
  return [...named]
    .filter((name) => !plan?.relations[name])
    .map((name) => ({
      kind: "view", name, what: "started_anew", text: `is as it was and is evaluated anew${reasons?.[name] ? `: ${reasons[name]}` : ""}; its outputs get nothing of it`,
      ...(plan ? costs(plan, name) : {}),
    }));
}

function operatorRows(plan) {
  return (plan?.operators ?? []).map((operator) => ({ kind: "operator", name: operator.name || operator.uid, what: operator.change, text: operatorText(operator) }));
}

function operatorText(operator) {
  if (operator.change === "added") return "is new and starts without state";
  const size = [operator.keys !== null && counted(operator.keys, "key"), operator.bytes !== null && bytes(operator.bytes), operator.is_size_known === false && "not known before the first checkpoint"].filter(Boolean).join(", ");
  const parts = [
    operator.kept_states.length && `goes on with ${operator.kept_states.join(", ")}`,
    operator.dropped_states.length && `drops ${operator.dropped_states.join(", ")}`,
    size && `state now: ${size}`,
    operator.reason,
  ].filter(Boolean);
  return parts.join("; ") || (operator.change === "removed" ? "is dropped" : "has no state");
}

function Declarations({ plan, isRunning }) {
  const relations = Object.entries(plan?.relations ?? {}).sort(byOrder);
  if (relations.length === 0) return null;
  return html`<div class="sides"><div class="sides-head" aria-hidden="true"><span>${isRunning ? "Running program" : "Program of the checkpoint"}</span><span>New program</span></div>
    ${relations.map(([name, relation]) => html`<${Declaration} key=${name} name=${name} relation=${relation} isFew=${relations.length <= FEW} />`)}
    <p class="muted">What is not listed is declared in the same way in both programs.</p></div>`;
}

function Declaration({ name, relation, isFew }) {
  const { saved, new: next } = relation;
  const isSame = saved && next && saved.sql === next.sql;
  const [isOpen, setOpen] = useState(isFew && !isSame);
  return html`<details open=${isOpen} onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><span class=${`effect effect-${WORDS[relation.change]}`}>${SIGNS[relation.change]} ${WORDS[relation.change]}</span> <span class="muted">${relation.kind}</span> <code>${name}</code>
      ${isSame && html`<span class="muted same">the same text, but what it reads is another</span>`}</summary>
    ${isOpen && html`<${SideBySide} before=${saved?.sql ?? ""} after=${next?.sql ?? ""} label=${`${relation.kind} ${name} in both programs`} />`}
  </details>`;
}

function Files({ files }) {
  if (files.length === 0) return null;
  return html`<div class="sides">${files.map(
    (file) => html`<details open><summary><span class=${`effect effect-${WORDS[file.change]}`}>${SIGNS[file.change]} ${WORDS[file.change]}</span> <span class="muted">file</span> <code>${file.path}</code></summary>
      <${SideBySide} patch=${file.diff} label=${`file ${file.path} in both programs`} /></details>`,
  )}</div>`;
}

/** What is approved, to the letter. */
function Programs({ programs }) {
  const [isOpen, setOpen] = useState(false);
  if (!programs?.saved && !programs?.new) return null;
  const shown = (hash) => (isOpen ? hash : hash?.slice(0, 12));
  return html`<p class="programs muted">From program ${["saved", "new"].map(
    (side, index) => html`${index ? " to " : ""}<code class=${classes("hash")}>${shown(programs[side]?.hash)}</code>${programs[side]?.version === undefined ? "" : ` (version ${programs[side].version})`}`,
  )} <button type="button" class="quiet" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${isOpen ? "short" : "in full"}</button></p>`;
}
