/** What colours, hatching and lines of the graph mean. */

import { html } from "./html.js";

const HEATS = ["0 %", "", "5 %", "15 %", "30 %", "50 %"];

export function Legend({ isChange }) {
  return html`<div class="legend">
    ${isChange
      ? html`<span class="key"><i class="swatch effect-new"></i>+ new</span>
          <span class="key"><i class="swatch effect-changed"></i>~ changed</span>
          <span class="key"><i class="swatch effect-dropped"></i>− dropped</span>
          <span class="key"><svg class="swatch" viewBox="0 0 18 12" aria-hidden="true"><rect class="hatch" width="18" height="12" /></svg>evaluated anew: entries of the storage read, estimated time</span>`
      : html`<span class="key">share of the steps' time
          <span class="scale">${HEATS.map((text, heat) => html`<i class=${`swatch heat-${heat}`} title=${text || "less than 5 %"}></i>`)}</span>
          0 to over 50 %, last 10 s</span>
          <span class="key"><svg class="swatch lines" viewBox="0 0 30 12" aria-hidden="true"><path d="M0 6H13" stroke-width="1.2" /><path d="M16 6H30" stroke-width="6" /></svg>width: rows in a second</span>`}
  </div>`;
}
