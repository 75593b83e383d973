"""The registry of the operators for each kind of node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from airflow_pipelines.engine.operators.accumulate import AccumulateOperator
from airflow_pipelines.engine.operators.affected_keys import AffectedKeysOperator
from airflow_pipelines.engine.operators.append_only_top_k import AppendOnlyTopKOperator
from airflow_pipelines.engine.operators.full import FullOperator
from airflow_pipelines.engine.operators.linear import LinearOperator
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.operators.recompute_groups import RecomputeGroupsOperator
from airflow_pipelines.engine.operators.recursive import RecursiveOperator
from airflow_pipelines.engine.operators.stream_graph import StreamGraphOperator
from airflow_pipelines.engine.operators.stream_output import StreamOutputOperator
from airflow_pipelines.engine.stream_nodes import StreamGraph, StreamOutput
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.linear import Scan, Select, UnionAll
from airflow_pipelines.sql.plan.ir.node import Node
from airflow_pipelines.sql.plan.ir.recursive import Recursive
from airflow_pipelines.sql.plan.ir.stage import Stage

N = TypeVar("N", bound=Node)


def _aggregate(stage: Stage, node: Aggregate) -> Operator[Aggregate]:
    return AccumulateOperator(stage, node) if node.is_linear else RecomputeGroupsOperator(stage, node)


_OPERATORS: dict[type[Any], Callable[[Stage, Any], Operator[Any]]] = {
    Scan: LinearOperator,
    Select: LinearOperator,
    UnionAll: LinearOperator,
    Aggregate: _aggregate,
    AffectedKeys: AffectedKeysOperator,
    AppendOnlyTopK: AppendOnlyTopKOperator,
    Full: FullOperator,
    Recursive: RecursiveOperator,
    StreamGraph: StreamGraphOperator,
    StreamOutput: StreamOutputOperator,
}


def register(node: type[N], operator: Callable[[Stage, N], Operator[N]]) -> None:
    """Register a class of operators for a class of nodes.

    :param node: the class of nodes, or any class with the interface of a node
    :param operator: the class of operators
    :raises ValueError: if the class of nodes has another one
    """
    if _OPERATORS.setdefault(node, operator) is not operator:
        raise ValueError(f"nodes of the class {node.__name__} have an operator already")


def operator_of(stage: Stage) -> Operator[Any]:
    """Return a stage's operator.

    :raises LookupError: if no class of operators is registered for the stage's node
    """
    kind = type(stage.node)
    if kind not in _OPERATORS:
        raise LookupError(f"no operator is registered for {kind.__name__}, the node of {stage.relation!r}")
    return _OPERATORS[kind](stage, stage.node)
