/** One node of a graph: its shape says what it is, its bar and colour how much of the steps' time it takes, its tag what changes. */

import { classes, html, memo } from "./html.js";
import { brief, estimate, rate, share, whole } from "./format.js";
import { NODE_WIDTH } from "./graph_layout.js";

const NAME_LETTERS = 21;
const LINE_LETTERS = 27;
const CUT = 9;

export const KIND_WORDS = { input: "input", output: "output", table: "table", view: "view", operator: "operator", stream: "stream program" };

const EFFECTS = {
  new: { sign: "+", word: "new" },
  changed: { sign: "~", word: "changed" },
  dropped: { sign: "−", word: "dropped" },
  connectors: { sign: "~", word: "connectors" },
  anew: { sign: "↻", word: "evaluated anew" },
};

/** What a change does to a node, in words. */
export const effectWord = (node) => (node.effect ? EFFECTS[node.effect].word : "");

const short = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);

/** The name as the graph shows it: a connector hangs at its relation, whose name need not be said again. */
const shownName = (node) =>
  node.kind === "input" || node.kind === "output" ? node.name.slice(node.name.lastIndexOf(".") + 1) : node.name;

/** The line below the name. */
export function figuresLine(node, figures) {
  if (node.kind === "input") return joined(node.transport, rateText(figures.inputs[node.name]));
  if (node.kind === "output") return joined(node.transport, rateText(figures.outputs[node.name]));
  if (node.kind === "operator") return joined(node.does, node.isKeyed ? "keyed" : null);
  const part = figures.shares[node.relation];
  return joined(node.kind === "view" && part !== undefined ? share(part) : node.kind, rateText(figures.relations[node.relation]));
}

const rateText = (value) => (value === undefined || value === null ? null : rate(value));
const joined = (...parts) => parts.filter(Boolean).join(" · ");

/** The line that says what a change costs. */
export function costLine(node) {
  if (node.evaluated) return `${brief(node.evaluated.rows)} entries · ${estimate(node.evaluated)}`;
  if (node.effect === "dropped" && node.droppedEntries !== undefined) return `${brief(node.droppedEntries)} entries go`;
  if (node.operatorChange?.dropped_states.length) return `drops ${node.operatorChange.dropped_states.join(", ")}`;
  if (node.effect === "connectors") return "rows stay";
  if (node.operatorChange?.kept_states.length) return "keeps its state";
  return "";
}

function outline(kind, width, height) {
  if (kind === "input") return `M6 0H${width - 14}L${width} ${height / 2}L${width - 14} ${height}H6Q0 ${height} 0 ${height - 6}V6Q0 0 6 0Z`;
  if (kind === "output") return `M0 0H${width - 6}Q${width} 0 ${width} 6V${height - 6}Q${width} ${height} ${width - 6} ${height}H0L14 ${height / 2}Z`;
  if (kind === "operator" || kind === "stream") {
    return `M${CUT} 0H${width - CUT}L${width} ${CUT}V${height - CUT}L${width - CUT} ${height}H${CUT}L0 ${height - CUT}V${CUT}Z`;
  }
  const round = kind === "table" ? 3 : 8;
  return `M${round} 0H${width - round}Q${width} 0 ${width} ${round}V${height - round}Q${width} ${height} ${width - round} ${height}`
    + `H${round}Q0 ${height} 0 ${height - round}V${round}Q0 0 ${round} 0Z`;
}

/** All that is said of a node, for those who do not see it. */
function spoken(node, line, cost, problem) {
  const parts = [`${KIND_WORDS[node.kind]} ${node.name}`, line, effectWord(node), cost, problem];
  return parts.filter(Boolean).join(", ");
}

export const GraphNode = memo(function GraphNode({
  node, x, y, height, line, part, heat, problem, isPaused, isSelected, isReachable, isFaded, onSelect, onFocus,
}) {
  const shape = outline(node.kind, NODE_WIDTH, height);
  const left = node.kind === "output" ? 24 : 14;
  const cost = costLine(node);
  const names = classes(
    "node", `kind-${node.kind}`, `heat-${heat}`, node.effect && `effect-${node.effect}`, node.evaluated && "evaluated",
    isSelected && "selected", isFaded && "faded",
  );
  return html`<g class=${names} data-node=${node.id} transform=${`translate(${x - NODE_WIDTH / 2} ${y - height / 2})`}
      role="button" tabindex=${isReachable ? 0 : -1} aria-pressed=${isSelected ? "true" : "false"}
      aria-label=${spoken(node, line, cost, problem)} onClick=${() => onSelect(node.id)} onFocus=${() => onFocus(node.id)}>
    <title>${`${KIND_WORDS[node.kind]} ${node.name}${problem ? `\n${problem}` : ""}`}</title>
    <path class="shape" d=${shape} />
    ${node.evaluated && html`<path class="hatch" d=${shape} />`}
    ${node.kind === "table" && html`<path class="table-mark" d=${`M5 0V${height}`} />`}
    ${part > 0 && html`<rect class="share" x="8" y=${height - 7} rx="1.5" height="3" width=${Math.max(2, (NODE_WIDTH - 16) * part)} />`}
    <text class="name" x=${left} y=${node.kind === "input" || node.kind === "output" ? 18 : 21}>${short(shownName(node), NAME_LETTERS)}</text>
    <text class="figures" x=${left} y=${node.kind === "input" || node.kind === "output" ? 33 : 38}>${short(line, LINE_LETTERS)}</text>
    ${cost && html`<text class="cost" x=${left} y="56">${short(cost, LINE_LETTERS)}</text>`}
    ${node.effect && html`<${EffectTag} effect=${node.effect} />`}
    ${problem && html`<g class="problem" transform=${`translate(${NODE_WIDTH - 12} 0)`}><circle r="9" /><text y="4">!</text></g>`}
    ${!problem && isPaused && html`<g class="paused" transform=${`translate(${NODE_WIDTH - 24} 12)`}><path d="M-3-4V4M3-4V4" /></g>`}
  </g>`;
});

function EffectTag({ effect }) {
  const { sign, word } = EFFECTS[effect];
  const width = 27 + word.length * 6.4;
  return html`<g class="tag" transform=${`translate(${NODE_WIDTH - width - 8} -8)`}>
    <rect width=${width} height="16" rx="8" /><text x="7" y="12">${sign} ${word}</text>
  </g>`;
}

/** Numbers of entries in storage by relation, as text. */
export const entriesRead = (reads) => Object.entries(reads).map(([name, entries]) => `${whole(entries)} of ${name}`).join(", ");
