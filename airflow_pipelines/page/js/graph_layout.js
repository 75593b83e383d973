/** Where the nodes of a graph are, by dagre. A layout is kept as long as the graph has the same nodes and edges. */

import { Graph, layout } from "../vendor/dagre/dagre.esm.js";

export const NODE_WIDTH = 178;
const HEIGHTS = { input: 42, output: 42 };
const RELATION_HEIGHT = 54;
const CHANGED_HEIGHT = 72;

/** The height of a node, which has a line more when it says what a change does to it. */
export const heightOf = (node) => (node.effect ? CHANGED_HEIGHT : (HEIGHTS[node.kind] ?? RELATION_HEIGHT));

/** From so many nodes on, the best layout takes longer than anybody wants to wait. */
export const LARGE = 60;

const kept = { key: null, value: null };

/**
 * @param {{nodes: Array, edges: Array}} picture nodes with `id` and `kind`, edges with `from` and `to`
 * @returns {{width: number, height: number, places: Map, lines: Map}} the middle of each node, the points of each edge
 */
export function layoutOf(picture) {
  const key = JSON.stringify([
    picture.nodes.map((node) => [node.id, heightOf(node)]),
    picture.edges.map((edge) => [edge.from, edge.to]),
  ]);
  if (kept.key !== key) {
    kept.key = key;
    kept.value = compute(picture);
  }
  return kept.value;
}

function compute(picture) {
  const graph = new Graph();
  const isLarge = picture.nodes.length > LARGE;
  graph.setGraph({ rankdir: "LR", nodesep: isLarge ? 12 : 18, ranksep: 64, marginx: 16, marginy: 16, ranker: isLarge ? "tight-tree" : "network-simplex" });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of picture.nodes) graph.setNode(node.id, { width: NODE_WIDTH, height: heightOf(node) });
  for (const edge of picture.edges) graph.setEdge(edge.from, edge.to);
  layout(graph);
  const { width, height } = graph.graph();
  return {
    width: Math.max(width, 1),
    height: Math.max(height, 1),
    places: new Map(picture.nodes.map((node) => [node.id, graph.node(node.id)])),
    lines: new Map(picture.edges.map((edge) => [edge.id, graph.edge(edge.from, edge.to).points])),
  };
}

/** A smooth line through the points of an edge. */
export function linePath(points) {
  const [first, ...others] = points;
  let path = `M${round(first.x)} ${round(first.y)}`;
  let last = first;
  for (const point of others) {
    const middle = (last.x + point.x) / 2;
    path += `C${round(middle)} ${round(last.y)} ${round(middle)} ${round(point.y)} ${round(point.x)} ${round(point.y)}`;
    last = point;
  }
  return path;
}

const round = (value) => Math.round(value * 10) / 10;
