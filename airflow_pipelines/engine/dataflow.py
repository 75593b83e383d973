"""A program's dataflow graph in the form of the REST contract: the inputs of each relation, and its strategy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.relation_graph import relation_graph
from airflow_pipelines.engine.snapshot import owner
from airflow_pipelines.engine.stages import stages_of
from airflow_pipelines.engine.stream_nodes import StreamGraph, StreamOutput
from airflow_pipelines.sql.plan.ir.recursive import Recursive
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.ir.to_sql import to_sql


def dataflow(program: Program, text: str) -> dict[str, Any]:
    """Return the graph of a program: tables, markers of time, and the stages of all views.

    :param program: the program
    :param text: its SQL text
    :returns: a JSON object: ``mir`` has the nodes by relation, ``sources`` the lines of the program, ``nodes`` and ``edges`` are
        those of :func:`~airflow_pipelines.engine.relation_graph.relation_graph`. ``calcite_plan`` is empty, because queries are
        analyzed by Spark
    """
    nodes = {name: _node("source", (), table=name) for name in program.tables}
    nodes |= {marker.relation: _node("clock" if marker.follows_clock else "waterline", ()) for marker in program.markers}
    for stage in stages_of(program, "auto"):
        nodes[stage.relation] = _node(
            stage.strategy, sorted(stage.reads), view=owner(stage.relation, program.views.keys()), query=_query(stage)
        )
    return {"calcite_plan": {}, "mir": nodes, "sources": text.splitlines(), **relation_graph(program)}


def dataflow_overview(program: Program) -> dict[str, Any]:
    """Return the graph without stages and text, which is small enough to be stored with each pipeline.

    :param program: the program
    """
    return {"calcite_plan": {}, "mir": {}, "sources": [], **relation_graph(program)}


def _node(
    operation: str, inputs: Iterable[str], *, table: str | None = None, view: str | None = None, query: str | None = None
) -> dict[str, Any]:
    return {
        "operation": operation,
        "table": table,
        "view": view,
        "inputs": [{"node": name, "output": 0} for name in inputs],
        "outputs": None,
        "calcite": None,
        "persistent_id": None,
        "query": query,
    }


def _query(stage: Stage) -> str | None:
    """Return a stage as a query over its inputs, or None for a recursion, which reads its own result, and for streams."""
    return None if isinstance(stage.node, Recursive | StreamGraph | StreamOutput) else to_sql(stage.node)
