/** Small signs, each of a shape of its own. */

import { html } from "./html.js";

const PATHS = {
  ok: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11z",
  idle: "M3.5 3.5h9v9h-9z",
  warn: "M8 1.8 14.8 14H1.2z",
  bad: "M4.6 3 8 6.4 11.4 3 13 4.6 9.6 8l3.4 3.4-1.6 1.6L8 9.6 4.6 13 3 11.4 6.4 8 3 4.6z",
  busy: "M8 2a6 6 0 0 1 6 6h-2.4A3.6 3.6 0 0 0 8 4.4zM8 14a6 6 0 0 1-6-6h2.4A3.6 3.6 0 0 0 8 11.6z",
  back: "M10.5 2.5 5 8l5.5 5.5",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3",
  close: "M4 4l8 8M12 4l-8 8",
};

const FILLED = new Set(["ok", "idle", "warn", "bad", "busy"]);

/** @param {{name: string}} properties which sign; it is decoration, words beside it say the same */
export function Icon({ name }) {
  return html`<svg class=${`icon icon-${name} ${FILLED.has(name) ? "filled" : "drawn"}`} viewBox="0 0 16 16" aria-hidden="true">
    <path d=${PATHS[name]} />
  </svg>`;
}

/** The state of a pipeline: a sign and a word. */
export function StatePill({ state }) {
  return html`<span class=${`pill tone-${state.tone}`}><${Icon} name=${state.tone} />${state.word}</span>`;
}
