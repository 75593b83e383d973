/** Two texts side by side, with what differs marked by colour, by a sign, and in words for those who do not see it. */

import { classes, html, useEffect, useMemo, useState } from "./html.js";
import { compareTexts, loadDiffing, rowsOf } from "./diffing.js";

const SIGNS = { del: "−", ins: "+" };

/**
 * @param {Object} properties
 * @param {string} properties.before one text
 * @param {string} properties.after the other
 * @param {?string} properties.patch a unified difference instead of two texts
 * @param {string} properties.label what it is, for those who do not see it
 */
export function SideBySide({ before = "", after = "", patch = null, label }) {
  const [state, setState] = useState("loading");
  useEffect(() => {
    let isLeft = false;
    loadDiffing().then(() => isLeft || setState("ready"), () => isLeft || setState("failed"));
    return () => { isLeft = true; };
  }, []);
  const rows = useMemo(() => (state !== "ready" ? [] : patch === null ? compareTexts(before, after) : rowsOf(patch)), [state, before, after, patch]);
  if (state === "loading") return html`<p class="muted">Comparing …</p>`;
  if (state === "failed" || rows.length === 0) return html`<${Plain} before=${before} after=${patch ?? after} />`;
  return html`<div class="scrolls"><table class="diff" aria-label=${label}>
    <colgroup><col class="number" /><col class="code" /><col class="number" /><col class="code" /></colgroup>
    <thead class="visually-hidden"><tr><th scope="col" colspan="2">running</th><th scope="col" colspan="2">new</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr><${Side} side=${row.left} /><${Side} side=${row.right} /></tr>`)}</tbody>
  </table></div>`;
}

function Side({ side }) {
  if (side.kind === "gap") return html`<td class="number gap"></td><td class="code gap">⋯</td>`;
  const words = { del: "removed: ", ins: "added: " }[side.kind];
  return html`<td class=${classes("number", side.kind)}>${side.number}</td>
    <td class=${classes("code", side.kind)}>
      <span class="sign" aria-hidden="true">${SIGNS[side.kind] ?? ""}</span>${words && html`<span class="visually-hidden">${words}</span>`}
      <code>${side.parts.map(({ text, isMarked }) => (isMarked ? html`<mark>${text}</mark>` : text))}</code>
    </td>`;
}

/** The texts as they are, where they cannot be compared. */
function Plain({ before, after }) {
  if (before === after) return html`<div class="plain-sides"><pre>${after}</pre></div>`;
  return html`<div class="plain-sides two"><pre>${before}</pre><pre>${after}</pre></div>`;
}
