"""A program as JSON and as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from airflow_pipelines.streams.graph.chains import Chain, Defaults, Link, Plan, plan_of
from airflow_pipelines.streams.graph.nodes import Graph


def plan_json(graph: Graph, sinks: Sequence[int], defaults: Defaults) -> str:
    """Return all operators with their inputs as JSON.

    :param graph: the program
    :param sinks: the ids of the nodes that would run
    :param defaults: the defaults for nodes that do not specify a value
    :returns: JSON with a list ``nodes``
    """
    plan = plan_of(graph, sinks, replace(defaults, chaining=False))
    return json.dumps({"nodes": [_node(plan, chain) for chain in plan.chains]}, indent=2)


def _node(plan: Plan, chain: Chain) -> dict[str, Any]:
    node = chain.head.node
    entry: dict[str, Any] = {
        "id": node.id,
        "type": node.name,
        "pact": node.operator.kind,
        "contents": node.description or node.name,
        "parallelism": chain.parallelism,
    }
    predecessors = [_describe_predecessor(link) for link in plan.into(chain)]
    if predecessors:
        entry["predecessors"] = predecessors
    return entry


def _describe_predecessor(link: Link) -> dict[str, Any]:
    side = "second" if link.edge.port else "first"
    predecessor = {"id": link.edge.source, "ship_strategy": link.edge.exchange.kind.value, "side": side}
    if link.edge.tag is not None:
        predecessor["side_output"] = link.edge.tag
    return predecessor


def explain(plan: Plan) -> str:
    """Return the chains of a program and their inputs as text.

    :param plan: the plan
    :returns: some lines
    """
    lines: list[str] = []
    for chain in plan.chains:
        tasks = "1 task" if chain.parallelism == 1 else f"{chain.parallelism} tasks"
        lines.append(f"Chain {chain.number + 1}: {tasks}")
        for link in plan.into(chain):
            source = plan.chains[link.source]
            port = " (second input)" if link.edge.port else ""
            tag = f", side output {link.edge.tag!r}" if link.edge.tag is not None else ""
            lines.append(f"  <- {link.edge.exchange.kind.value} from chain {source.number + 1}{tag}{port}")
        for step in chain.steps:
            description = f" - {step.node.description}" if step.node.description else ""
            lines.append(f"  {step.name} [{step.uid}]{description}")
    return "\n".join(lines)
