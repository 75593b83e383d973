/** What the newest samples say of the parts of a graph: rows in a second, and shares of the time of steps. */

const RECENT_MS = 10_000;

/** The figures of nothing. */
export const NO_FIGURES = { inputs: {}, outputs: {}, relations: {}, shares: {}, busy: null, rowsPerSecond: null };

/**
 * @param {?Object} activity the samples of the last minutes
 * @returns {Object} means over the last ten seconds, by name
 */
export function figuresOf(activity) {
  if (!activity?.t?.length) return NO_FIGURES;
  const recent = activity.t.filter((end) => end > activity.t.at(-1) - RECENT_MS).length;
  const means = (series) => Object.fromEntries(Object.entries(series ?? {}).map(([name, values]) => [name, mean(values.slice(-recent))]));
  return {
    inputs: means(activity.inputs),
    outputs: means(activity.outputs),
    relations: means(activity.relations),
    shares: sharesOf(means(activity.views_ms)),
    busy: atMostAll(mean((activity.busy ?? []).slice(-recent))),
    rowsPerSecond: mean((activity.rows_per_second ?? []).slice(-recent)),
  };
}

function sharesOf(times) {
  const total = Object.values(times).reduce((sum, time) => sum + (time ?? 0), 0);
  return total > 0 ? Object.fromEntries(Object.entries(times).map(([name, time]) => [name, (time ?? 0) / total])) : {};
}

/** A step counts where it ended, so that the share of a short interval may be more than all of it. */
export const atMostAll = (part) => (part === null ? null : Math.min(1, part));

function mean(values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

/** The rows in a second that go along an edge; null when that is not known. */
export function edgeRate(edge, nodes, figures) {
  const from = nodes.get(edge.from);
  const to = nodes.get(edge.to);
  if (from.kind === "input") return figures.inputs[from.name] ?? null;
  if (to.kind === "output") return figures.outputs[to.name] ?? null;
  return from.relation === null ? null : (figures.relations[from.relation] ?? null);
}

/** How wide a line is for a number of rows in a second: each ten times as many are two pixels more. */
export const lineWidth = (rows) => (rows ? Math.min(13, 1.5 + 2 * Math.log10(1 + rows)) : 1.2);

/** One of six colours for a share of the time, none (0) to most (5). */
export function heatOf(value) {
  if (!value) return 0;
  return 1 + [0.05, 0.15, 0.3, 0.5].filter((limit) => value >= limit).length;
}
