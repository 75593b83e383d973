/** What the newest steps cost, and how many rows went through in the last minutes. */

import { html, useMemo } from "./html.js";
import { Chart, colour, seriesColour, uPlot } from "./chart.js";
import { counted, millis, rate, share, UNKNOWN, whole } from "./format.js";
import { atMostAll } from "./figures.js";
import { Empty } from "./states.js";

const SHOWN_VIEWS = 5;
const MEDIAN = 0.5;
const SLOW = 0.99;

/**
 * @param {Object} properties
 * @param {?Array} properties.steps the newest steps, oldest first
 * @param {?Object} properties.activity samples of the last minutes
 */
export function Steps({ steps, activity, theme }) {
  const stacked = useMemo(() => stack(steps ?? []), [steps]);
  return html`<div class="charts">
    <section><h3>Step times ${steps?.length ? html`<span class="muted">${summary(steps)}</span>` : ""}</h3>
      ${steps?.length
        ? html`<${Chart} label=${`Times of the newest ${counted(steps.length, "step")} by view: ${summary(steps)}`} data=${stacked.data} shape=${`${stacked.names.join("\n")}\n${theme}`} options=${() => stepOptions(stacked.names, () => stacked.rows)} />`
        : html`<${Empty} title="No steps yet">A step is made when rows come in, or when time changes a view.<//>`}</section>
    <section><h3>Last minutes ${activity?.t?.length ? html`<span class="muted">rows in a second, and how much of the time steps took</span>` : ""}</h3>
      ${activity?.t?.length > 1
        ? html`<${Chart} label="Rows in a second, and the share of time in steps, of the last minutes" data=${activityData(activity)} shape=${theme} options=${activityOptions} />`
        : html`<${Empty} title="No samples yet">They come every two seconds while the pipeline runs.<//>`}</section>
  </div>`;
}

function summary(steps) {
  const times = steps.map((step) => step.duration_ms).sort((one, other) => one - other);
  const at = (part) => times[Math.min(times.length - 1, Math.floor(times.length * part))];
  return `median ${millis(at(MEDIAN))}, 99 % ${millis(at(SLOW))}`;
}

/** The times of views on top of each other: those of the largest sums, and all others together. */
function stack(steps) {
  const sums = new Map();
  const perStep = steps.map((step) => {
    const times = new Map();
    for (const { view, duration_ms: time } of step.operators) times.set(view, (times.get(view) ?? 0) + time);
    for (const [view, time] of times) sums.set(view, (sums.get(view) ?? 0) + time);
    return times;
  });
  const views = [...sums].sort(([, one], [, other]) => other - one).map(([view]) => view).slice(0, SHOWN_VIEWS);
  const names = [...views, "other"];
  // Views of a step are evaluated at the same time, so that their times together may be more than the step took.
  const parts = steps.map((step, index) => {
    const times = perStep[index];
    const all = [...times.values()].reduce((sum, time) => sum + time, 0);
    const scale = all > step.duration_ms && all > 0 ? step.duration_ms / all : 1;
    const shown = views.map((view) => (times.get(view) ?? 0) * scale);
    return [...shown, Math.max(0, step.duration_ms - shown.reduce((sum, time) => sum + time, 0))];
  });
  const totals = names.map((_, index) => parts.map((each) => each.slice(0, index + 1).reduce((sum, time) => sum + time, 0)));
  return { names, data: [steps.map((step) => step.step), ...totals.reverse()], rows: { parts, steps } };
}

function stepOptions(names, rows) {
  const bars = uPlot.paths.bars({ size: [0.8, 24] });
  const last = names.length - 1;
  const value = (index) => (_, __, ___, at) => (at === null || at === undefined ? UNKNOWN : millis(rows().parts[at]?.[index]));
  return {
    scales: { x: { time: false, range: (_, lowest, highest) => [lowest - 0.7, highest + 0.7] }, y: { range: (_, __, highest) => [0, highest * 1.08 || 1] } },
    axes: [
      { values: (_, splits) => splits.map((split) => (Number.isInteger(split) ? whole(split) : "")) },
      { size: 58, values: (_, splits) => splits.map(millis) },
    ],
    legend: { live: true },
    cursor: { y: false, points: { show: false } },
    series: [
      { label: "step", value: (_, step, __, at) => (at === null || at === undefined ? UNKNOWN : `${whole(step)}: ${millis(rows().steps[at]?.duration_ms)}, ${whole(rows().steps[at]?.input_rows)} rows`) },
      // The highest is drawn first, so that each shows its own part.
      ...names.map((_, index) => last - index).map((index) => ({
        label: names[index], fill: index === last ? colour("--line-strong") : seriesColour(index), width: 0, paths: bars, points: { show: false }, value: value(index),
      })),
    ],
  };
}

const activityData = ({ t, rows_per_second: rows, busy }) => [t.map((end) => end / 1000), rows, busy.map(atMostAll)];

function activityOptions() {
  return {
    scales: { rows: { range: (_, __, highest) => [0, (highest || 1) * 1.1] }, busy: { range: [0, 1] } },
    axes: [
      { values: [[60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]] },
      { scale: "rows", size: 62, values: (_, splits) => splits.map(rate) },
      { scale: "busy", side: 1, size: 54, grid: { show: false }, values: (_, splits) => splits.map(share) },
    ],
    cursor: { y: false },
    series: [
      { value: (_, time) => (time === null ? UNKNOWN : new Date(time * 1000).toLocaleTimeString("en-GB")) },
      { label: "rows", scale: "rows", stroke: seriesColour(0), width: 2, value: (_, rows) => rate(rows), points: { show: false } },
      { label: "in steps", scale: "busy", stroke: seriesColour(1), width: 1.5, dash: [5, 4], value: (_, part) => share(part), points: { show: false } },
    ],
  };
}
