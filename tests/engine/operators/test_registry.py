"""Which operators are found for stages, and what is said where there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from airflow_pipelines.engine.operators.full import FullOperator
from airflow_pipelines.engine.operators.linear import LinearOperator
from airflow_pipelines.engine.operators.registry import operator_of, register
from airflow_pipelines.sql.plan.ir.full import CHOSEN, Full
from airflow_pipelines.sql.plan.ir.linear import Scan
from airflow_pipelines.sql.plan.ir.stage import Stage


@dataclass(frozen=True)
class Unknown:
    reads: frozenset[str] = frozenset()


def test_the_operator_of_a_stage_follows_from_the_class_of_its_node() -> None:
    stage = Stage("v", (("a", "int"),), Full("SELECT a FROM t", ("t",), CHOSEN))
    operator = operator_of(stage)
    assert type(operator) is FullOperator
    assert (operator.relation, operator.reads, operator.strategy) == ("v", {"t"}, "full")
    assert type(operator_of(Stage("v", (("a", "int"),), Scan("t", ("a",))))) is LinearOperator


def test_a_node_without_an_operator_is_named() -> None:
    node: Any = Unknown()
    with pytest.raises(LookupError, match="no operator is registered for Unknown, the node of 'v'"):
        operator_of(Stage("v", (), node))


def test_a_kind_of_node_has_one_operator() -> None:
    register(Full, FullOperator)
    with pytest.raises(ValueError, match="Full have an operator already"):
        register(Full, LinearOperator)  # type: ignore[arg-type]
