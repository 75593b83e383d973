/** A chart by uPlot, in the colours of the page. */

import uPlot from "../vendor/uplot/uPlot.esm.js";
import { html, useLayoutEffect, useRef } from "./html.js";

/** Colours that also people with other colour vision tell apart; the legend has the names. */
const PALETTE = ["--series-1", "--series-2", "--series-3", "--series-4", "--series-5", "--series-6"];

/** The value of a colour of the page's style. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const seriesColour = (index) => colour(PALETTE[index % PALETTE.length]);

/**
 * @param {Object} properties
 * @param {function(): Object} properties.options makes the options of uPlot, without size
 * @param {Array} properties.data as uPlot wants it
 * @param {string} properties.shape what the options depend on: with another one the chart is made anew
 * @param {string} properties.label what is charted, for those who do not see it
 */
export function Chart({ options, data, shape, label, height = 190 }) {
  const place = useRef(null);
  const chart = useRef(null);
  useLayoutEffect(() => {
    const width = () => Math.max(240, place.current.clientWidth);
    const made = options();
    const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "11px system-ui" };
    chart.current = new uPlot({ ...made, width: width(), height, axes: made.axes.map((each) => ({ ...axis, ...each })) }, data, place.current);
    const watched = new ResizeObserver(() => chart.current.setSize({ width: width(), height }));
    watched.observe(place.current);
    return () => {
      watched.disconnect();
      chart.current.destroy();
    };
  }, [shape]);
  useLayoutEffect(() => chart.current.setData(data), [data]);
  return html`<div class="chart" ref=${place} role="img" aria-label=${label}></div>`;
}

export { uPlot };
