/**
 * The graph of a pipeline: connectors, tables, views and the operators of its stream program. What it looks like is known from the
 * program alone; figures and a change are laid over it.
 */

import { namesRead } from "./sql_names.js";

const KINDS = {
  input_connector: "input",
  output_connector: "output",
  table: "table",
  view: "view",
  stream_program: "stream",
};

const relationId = (name) => `relation:${name}`;
const operatorId = (uid) => `operator:${uid}`;

/**
 * @param {?Object} info the descriptor's `program_info`
 * @param {?Object} streams the graph of its stream program, if there is one
 * @returns {{nodes: Array<Object>, edges: Array<Object>}} without figures
 */
export function pictureOf(info, streams) {
  const drawn = info ? (info.dataflow?.nodes ? fromDataflow(info.dataflow) : fromSchema(info)) : { nodes: [], edges: [] };
  const whole = streams ? withOperators(drawn, streams) : drawn;
  return { nodes: whole.nodes, edges: unique(whole.edges, whole.nodes) };
}

function fromDataflow(dataflow) {
  return {
    nodes: dataflow.nodes.map((node) => ({
      id: node.id,
      kind: KINDS[node.kind] ?? "view",
      name: node.name,
      relation: node.relation ?? node.name,
      transport: node.transport ?? null,
      isMaterialized: node.materialized ?? false,
    })),
    edges: dataflow.edges.map(({ from, to }) => ({ from, to })),
  };
}

/** Of a program that an earlier release compiled, it is not known which view reads what. */
function fromSchema(info) {
  const relations = (list, kind) =>
    (list ?? []).map(({ name, materialized }) => ({
      id: relationId(name), kind, name, relation: name, transport: null, isMaterialized: materialized ?? false,
    }));
  const tables = relations(info.schema?.inputs, "table");
  const views = relations(info.schema?.outputs, "view").filter(({ name }) => name !== "error_view");
  const connectors = (known, kind) =>
    Object.entries(known ?? {}).map(([name, { stream, transport }]) => ({
      id: `${kind}:${name}`, kind, name, relation: stream, transport: transport?.name ?? null, isMaterialized: false,
    }));
  const inputs = connectors(info.input_connectors, "input");
  const outputs = connectors(info.output_connectors, "output");
  const there = new Set([...tables, ...views].map(({ name }) => name));
  return {
    nodes: [...inputs, ...tables, ...views, ...outputs],
    edges: [
      ...inputs.filter((each) => there.has(each.relation)).map((each) => ({ from: each.id, to: relationId(each.relation) })),
      ...outputs.filter((each) => there.has(each.relation)).map((each) => ({ from: relationId(each.relation), to: each.id })),
    ],
  };
}

/** The one node that stands for the stream program is replaced by its operators. */
function withOperators({ nodes, edges }, streams) {
  const program = nodes.find((node) => node.kind === "stream");
  const operators = (streams.operators ?? []).map((each) => ({
    id: operatorId(each.uid),
    kind: "operator",
    name: each.name || each.uid,
    uid: each.uid,
    relation: null,
    transport: null,
    does: each.kind,
    isKeyed: each.is_keyed,
    states: each.states,
    isMaterialized: false,
  }));
  const hidden = new Set([program?.id, ...(streams.sources ?? []).map((each) => relationId(each.table))]);
  const left = nodes.filter((node) => !hidden.has(node.id));
  const added = [
    ...(streams.operators ?? []).flatMap((each) => each.inputs.map((input) => ({ from: operatorId(input), to: operatorId(each.uid) }))),
    ...(streams.inputs ?? []).map((each) => ({ from: relationId(each.relation), to: operatorId(each.uid) })),
    ...(streams.outputs ?? []).map((each) => ({ from: operatorId(each.uid), to: relationId(each.relation) })),
    // The connector of a source of the program itself.
    ...(streams.sources ?? []).flatMap((each) =>
      left.filter((node) => node.kind === "input" && node.relation === each.table).map((node) => ({ from: node.id, to: operatorId(each.uid) })),
    ),
  ];
  return { nodes: [...left, ...operators], edges: [...edges, ...added] };
}

/** One edge from a node to another one, however often it is said. */
function unique(edges, nodes) {
  const known = new Set(nodes.map(({ id }) => id));
  const found = new Map();
  for (const edge of edges) {
    const id = `${edge.from}→${edge.to}`;
    if (edge.from !== edge.to && known.has(edge.from) && known.has(edge.to) && !found.has(id)) found.set(id, { ...edge, id });
  }
  return [...found.values()];
}

const RELATION_CHANGES = { added: "new", removed: "dropped", modified: "changed", connectors: "connectors" };
const OPERATOR_CHANGES = { added: "new", removed: "dropped", modified: "changed", started_anew: "anew" };

/**
 * Lay a change over a picture: what is in only one of the two programs is added to it, and every node says what happens to it.
 * @param {{nodes: Array, edges: Array}} picture of either of the two programs
 * @param {Object} change the change that waits, with its `plan`
 */
export function withChange(picture, change) {
  const { plan } = change;
  if (!plan) return picture;
  const nodes = new Map(picture.nodes.map((node) => [node.id, { ...node }]));
  const edges = [...picture.edges];
  for (const [name, relation] of Object.entries(plan.relations)) addRelation(nodes, name, relation);
  for (const operator of plan.operators ?? []) addOperator(nodes, operator);
  for (const [name, relation] of Object.entries(plan.relations)) drawReads(nodes, edges, name, relation);
  for (const [what, kind] of [["input", "input"], ["output", "output"]]) markConnectors(nodes, edges, change.approval_diff, what, kind);
  for (const [name, evaluation] of Object.entries(plan.evaluated)) {
    const node = nodes.get(relationId(name));
    if (node) {
      node.evaluated = evaluation;
      node.effect ??= "anew";
    }
  }
  for (const [name, entries] of Object.entries(plan.dropped)) {
    const node = nodes.get(relationId(name));
    if (node) node.droppedEntries = entries;
  }
  return { nodes: [...nodes.values()], edges: unique(edges, [...nodes.values()]) };
}

function addRelation(nodes, name, relation) {
  const id = relationId(name);
  const node = nodes.get(id) ?? {
    id, kind: relation.kind, name, relation: name, transport: null, isMaterialized: false,
  };
  nodes.set(id, { ...node, effect: RELATION_CHANGES[relation.change] ?? "changed", declarations: relation });
}

function addOperator(nodes, operator) {
  const id = operatorId(operator.uid);
  const node = nodes.get(id) ?? {
    id, kind: "operator", name: operator.name || operator.uid, uid: operator.uid, relation: null, transport: null, isMaterialized: false,
  };
  nodes.set(id, { ...node, effect: OPERATOR_CHANGES[operator.change] ?? "changed", operatorChange: operator });
}

/** What a view reads in one of the programs and not in the other: the picture has the lines of only one of them. */
function drawReads(nodes, edges, name, relation) {
  if (relation.kind !== "view") return;
  const [before, after] = [relation.saved, relation.new].map((side) => namesRead(side?.sql ?? ""));
  for (const node of nodes.values()) {
    const isBefore = before.has(node.name);
    const isAfter = after.has(node.name);
    if (!node.id.startsWith("relation:") || isBefore === isAfter) continue;
    const [from, to, effect] = [node.id, relationId(name), isAfter ? "new" : "dropped"];
    const drawn = edges.findIndex((edge) => edge.from === from && edge.to === to);
    if (drawn < 0) edges.push({ from, to, effect });
    else edges[drawn] = { ...edges[drawn], effect };
  }
}

function markConnectors(nodes, edges, diff, what, kind) {
  for (const [change, effect] of [["added", "new"], ["removed", "dropped"], ["modified", "changed"]]) {
    for (const name of diff?.[`${change}_${what}_connectors`] ?? []) {
      const id = `${kind}:${name}`;
      const relation = name.slice(0, name.lastIndexOf("."));
      const node = nodes.get(id) ?? { id, kind, name, relation, transport: null, isMaterialized: false };
      nodes.set(id, { ...node, effect });
      if (nodes.has(relationId(relation))) {
        edges.push(kind === "input" ? { from: id, to: relationId(relation) } : { from: relationId(relation), to: id });
      }
    }
  }
}

/** Whether a change has anything to show in a picture. */
export const effectsIn = (picture) => picture.nodes.some((node) => node.effect);
