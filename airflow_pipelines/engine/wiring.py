"""The parts of a circuit before it has any rows: its operators, the relations between them, and those that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import StructType

from airflow_pipelines.engine.arrival_order import ordered_tables, with_sequence
from airflow_pipelines.engine.batch import weighted
from airflow_pipelines.engine.execution.outcome import stage_schema
from airflow_pipelines.engine.lateness import ERROR_VIEW
from airflow_pipelines.engine.layout import layouts
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.operators.registry import operator_of
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.snapshot import owner
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.stages import ends, kept_relations, stages_of
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.sql.plan.ir.stage import Stage


@dataclass(frozen=True, slots=True)
class Wiring:
    """The parts of a circuit, and their connections.

    :param stages: the stages of all views, each after its inputs
    :param operators: the operators of the stages, in the same order
    :param owners: the view that each stage's relation belongs to
    :param kept: the relations whose contents are kept
    :param ordered: the tables whose rows keep their arrival order
    :param unread: the views whose deltas nothing in the circuit needs
    :param schemas: the schemas of all relations' batches
    :param layouts: the layouts of the contents and the states of relations, by relation
    """

    stages: tuple[Stage, ...]
    operators: tuple[Operator[Any], ...]
    owners: Mapping[str, str]
    kept: frozenset[str]
    ordered: frozenset[str]
    unread: frozenset[str]
    schemas: Mapping[str, StructType]
    layouts: Mapping[str, str]

    @property
    def readers(self) -> dict[str, str]:
        """The first view that reads each relation, by the relation's name."""
        return {name: self.owners[stage.relation] for stage in reversed(self.stages) for name in stage.reads}


def build_wiring(program: Program, strategy: str) -> Wiring:
    """Build the parts of a program's circuit.

    :param program: the program
    :param strategy: see :class:`~airflow_pipelines.engine.circuit.Circuit`
    :raises ValueError: for an unknown strategy, and if an operator cannot read its inputs in order
    """
    stages = stages_of(program, strategy)
    operators = tuple(map(operator_of, stages))
    markers = {marker.relation: marker for marker in program.markers}
    kept = (kept_relations(program, operators) | {SYSTEM_VIEW}) - markers.keys()
    ordered = ordered_tables(operators, program.tables)
    inputs = {name: weighted(spark_schema(program.schemas[name])) for name in program.tables}
    inputs[SYSTEM_VIEW] = weighted(spark_schema(ERROR_VIEW))
    states = {operator.relation: operator.empty_states() for operator in operators}
    return Wiring(
        stages,
        operators,
        owners={stage.relation: owner(stage.relation, program.views.keys()) for stage in stages},
        kept=kept,
        ordered=ordered,
        unread=ends(program, stages, kept | {column.relation for column in program.late_columns}),
        schemas={
            **{name: with_sequence(schema) if name in ordered else schema for name, schema in inputs.items()},
            **{stage.relation: weighted(stage_schema(stage)) for stage in stages},
        },
        layouts=layouts(inputs, markers, stages, states),
    )
