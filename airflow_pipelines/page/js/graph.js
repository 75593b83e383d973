/** The graph of a pipeline: from connectors over tables and views to connectors. */

import { classes, html, memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./html.js";
import { rate } from "./format.js";
import { edgeRate, heatOf, lineWidth } from "./figures.js";
import { heightOf, LARGE, layoutOf, linePath } from "./graph_layout.js";
import { figuresLine, GraphNode } from "./graph_node.js";
import { Icon } from "./icons.js";
import { Legend } from "./legend.js";
import { Loading } from "./states.js";
import { Viewport } from "./viewport.js";

const LOWEST = 240;
const HIGHEST = 560;
const HIGHEST_PART = 0.72;
/** From so many nodes on, one looks for a name. */
const MANY = 16;

const Edge = memo(function Edge({ path, width, text, effect, isNear }) {
  return html`<path class=${classes("edge", effect && `effect-${effect}`, isNear && "near")} d=${path} stroke-width=${width}>
    <title>${text}</title>
  </path>`;
});

/**
 * @param {Object} properties
 * @param {{nodes: Array, edges: Array}} properties.picture what is drawn
 * @param {Object} properties.figures what the newest samples say
 * @param {Map<string, {problem: ?string, isPaused: boolean}>} properties.health by node
 * @param {?string} properties.selected the id of the node whose details are shown
 * @param {function(?string): void} properties.onSelect
 * @param {boolean} properties.isChange whether the picture has a change in it
 */
export function Graph(properties) {
  const isLarge = properties.picture.nodes.length > LARGE;
  const [isReady, setReady] = useState(!isLarge);
  // A large graph takes a moment: the rest of the page is drawn before it.
  useEffect(() => { setTimeout(() => setReady(true), 30); }, []);
  return isReady ? html`<${Drawing} ...${properties} />` : html`<${Loading} what="the graph" />`;
}

function Drawing({ picture, figures, health, selected, onSelect, isChange }) {
  const svg = useRef(null);
  const content = useRef(null);
  const viewport = useRef(null);
  const [focused, setFocused] = useState(null);
  const placed = useMemo(() => layoutOf(picture), [picture]);
  const nodes = useMemo(() => new Map(picture.nodes.map((node) => [node.id, node])), [picture]);
  const reachable = nodes.has(focused) ? focused : picture.nodes[0]?.id;
  const height = Math.min(Math.max(HIGHEST, window.innerHeight * HIGHEST_PART), Math.max(LOWEST, placed.height + 24));

  useLayoutEffect(() => {
    viewport.current = new Viewport(svg.current, content.current);
    return () => viewport.current.close();
  }, []);
  useLayoutEffect(() => viewport.current.start(placed), [placed]);
  useEffect(() => {
    const watched = new ResizeObserver(() => viewport.current.isMoved || viewport.current.start(placed));
    watched.observe(svg.current);
    return () => watched.disconnect();
  }, [placed]);

  const go = useCallback(
    (id) => {
      setFocused(id);
      viewport.current.reveal(placed.places.get(id));
      svg.current.querySelector(`[data-node="${CSS.escape(id)}"]`).focus({ preventScroll: true });
    },
    [placed],
  );
  const onKey = (event) => {
    const id = event.target.closest?.("[data-node]")?.dataset.node;
    if (event.key === "Escape") onSelect(null);
    else if (event.key === "+" || event.key === "=") viewport.current.zoom(1.25);
    else if (event.key === "-") viewport.current.zoom(0.8);
    else if (event.key === "0") viewport.current.fit(placed);
    else if (id && (event.key === "Enter" || event.key === " ")) onSelect(id);
    else if (id && event.key.startsWith("Arrow")) {
      const next = neighbour(id, event.key, picture, placed);
      if (next) go(next);
    } else return;
    event.preventDefault();
  };

  const hot = useMemo(() => new Set(picture.edges.filter(({ from, to }) => from === selected || to === selected).map(({ id }) => id)), [
    picture, selected,
  ]);
  return html`<div class="graph">
    <svg ref=${svg} class="canvas" height=${height} role="group" aria-label="Graph of the pipeline: arrow keys go from node to node, Enter shows details"
        onKeyDown=${onKey}>
      <defs>
        <pattern id="hatching" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <path d="M0 0V7" />
        </pattern>
        <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">
          <path d="M0 0.5 8 4 0 7.5Z" />
        </marker>
      </defs>
      <g ref=${content}>
        ${picture.edges.map((edge) => {
          const rows = edgeRate(edge, nodes, figures);
          const text = `${nodes.get(edge.from).name} → ${nodes.get(edge.to).name}: ${rate(rows)}`;
          return html`<${Edge} key=${edge.id} path=${linePath(placed.lines.get(edge.id))} width=${lineWidth(rows)} text=${text}
            effect=${edgeEffect(edge, nodes)} isNear=${hot.has(edge.id)} />`;
        })}
        ${picture.nodes.map((node) => {
          const place = placed.places.get(node.id);
          const part = isChange || node.kind !== "view" ? 0 : (figures.shares[node.relation] ?? 0);
          const { problem = null, isPaused = false } = health.get(node.id) ?? {};
          return html`<${GraphNode} key=${node.id} node=${node} x=${place.x} y=${place.y} height=${heightOf(node)}
            line=${figuresLine(node, figures)} part=${Math.round(part * 100) / 100} heat=${heatOf(part)} problem=${problem} isPaused=${isPaused}
            isSelected=${selected === node.id} isReachable=${reachable === node.id} isFaded=${isChange && !node.effect}
            onSelect=${onSelect} onFocus=${setFocused} />`;
        })}
      </g>
    </svg>
    ${picture.nodes.length > MANY && html`<${Find} nodes=${picture.nodes} onFound=${(id) => { go(id); onSelect(id); }} />`}
    <div class="graph-buttons">
      <button type="button" title="Closer (+)" aria-label="Closer" onClick=${() => viewport.current.zoom(1.25)}><${Icon} name="plus" /></button>
      <button type="button" title="Farther (−)" aria-label="Farther" onClick=${() => viewport.current.zoom(0.8)}><${Icon} name="minus" /></button>
      <button type="button" title="All of it (0)" aria-label="Show all of it" onClick=${() => viewport.current.fit(placed)}><${Icon} name="fit" /></button>
    </div>
    <${Legend} isChange=${isChange} />
  </div>`;
}

/** Going to a node by its name. */
function Find({ nodes, onFound }) {
  const input = useRef(null);
  const find = (event) => {
    const node = nodes.find(({ name }) => name === event.target.value);
    if (node) onFound(node.id);
  };
  return html`<div class="find"><input ref=${input} type="search" list="node-names" aria-label="Go to a table, view or connector" placeholder="Go to …" onInput=${find} />
    <datalist id="node-names">${nodes.map(({ name }) => html`<option value=${name} />`)}</datalist></div>`;
}

/** An edge belongs to only one of the programs where one of its ends does, or where only one of them reads so. */
function edgeEffect(edge, nodes) {
  if (edge.effect) return edge.effect;
  const ends = [nodes.get(edge.from).effect, nodes.get(edge.to).effect];
  return ["dropped", "new"].find((effect) => ends.includes(effect)) ?? null;
}

/** Where an arrow key leads: along an edge to the left and right, to the next node of the same column up and down. */
function neighbour(id, key, picture, placed) {
  const here = placed.places.get(id);
  const distance = (other) => Math.abs(placed.places.get(other).y - here.y);
  const nearest = (ids) => ids.sort((one, other) => distance(one) - distance(other))[0] ?? null;
  if (key === "ArrowRight") return nearest(picture.edges.filter(({ from }) => from === id).map(({ to }) => to));
  if (key === "ArrowLeft") return nearest(picture.edges.filter(({ to }) => to === id).map(({ from }) => from));
  const sign = key === "ArrowDown" ? 1 : -1;
  const column = picture.nodes.map((node) => node.id).filter((other) => {
    const place = placed.places.get(other);
    return Math.abs(place.x - here.x) < 60 && (place.y - here.y) * sign > 1;
  });
  return nearest(column);
}
