/** A line without axes that says how a figure went. */

import { html, memo } from "./html.js";
import { rate } from "./format.js";

const WIDTH = 120;
const HEIGHT = 26;

/** The points of the line, from left to right; gaps (null) break it. */
export function sparklinePath(values, width = WIDTH, height = HEIGHT) {
  const highest = Math.max(...values.filter((value) => value !== null), 0) || 1;
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  let isOpen = false;
  return values
    .map((value, index) => {
      if (value === null) {
        isOpen = false;
        return "";
      }
      const point = `${isOpen ? "L" : "M"}${(index * step).toFixed(1)} ${(height - 2 - (value / highest) * (height - 4)).toFixed(1)}`;
      isOpen = true;
      return point;
    })
    .join("");
}

/** @param {{values: Array<?number>, key_: string}} properties rows in a second, oldest first */
export const Sparkline = memo(function Sparkline({ values, label }) {
  const known = (values ?? []).filter((value) => value !== null);
  if (known.length < 2) return html`<span class="muted" aria-label=${`${label}: no samples`}>–</span>`;
  const text = `${label}: ${rate(known.at(-1))} now, at most ${rate(Math.max(...known))}`;
  return html`<svg class="sparkline" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${text}>
    <title>${text}</title>
    <path class="base" d=${`M0 ${HEIGHT - 2}H${WIDTH}`} vector-effect="non-scaling-stroke" />
    <path d=${sparklinePath(values)} vector-effect="non-scaling-stroke" />
  </svg>`;
});
