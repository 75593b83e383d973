"""Small helpers for tests that run programs on the engine."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.step import Step
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.rows.changes import GIVEN, OP, Op, TableChanges


class Running:
    """A program on a circuit; every step is published at once."""

    def __init__(
        self,
        text: str,
        sessions: SparkSessions,
        strategy: str = "auto",
        compiled: Program | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.program = compiled or compile_program(text, sessions)
        self.sessions = sessions
        # It goes with this object.
        self._folder = tempfile.TemporaryDirectory(prefix="batches-")
        self.store = BatchStore(self._folder.name)
        self.circuit = Circuit(self.program, sessions, self.store, strategy, limits)

    def changes(self, table: str, *rows: Sequence[Any], op: Op = Op.INSERT, given: Sequence[str] | None = None) -> TableChanges:
        """Whole rows of a table, all with the same operation."""
        arrow = self.program.schemas[table].arrow
        columns = [pa.array([row[at] for row in rows], column.type) for at, column in enumerate(arrow)]
        data = pa.table([*columns, pa.array([int(op)] * len(rows), pa.int8())], names=[*arrow.names, OP])
        if given is not None:
            data = data.append_column(GIVEN, pa.array([list(given)] * len(rows), pa.list_(pa.string())))
        return TableChanges(table, data)

    def step(self, *changes: TableChanges) -> Step:
        step = self.circuit.step(list(changes))
        self.circuit.publish(step)
        return step

    def insert(self, table: str, *rows: Sequence[Any]) -> Step:
        return self.step(self.changes(table, *rows))

    def delete(self, table: str, *rows: Sequence[Any]) -> Step:
        return self.step(self.changes(table, *rows, op=Op.DELETE))

    def rows(self, relation: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in self.circuit.relation(relation).collect()), key=repr)


def only(compiled: Program, names: Collection[str]) -> Program:
    """A compiled program with some of its views, and those that they read."""
    views, wanted = compiled.views, list(names)
    for name in wanted:
        wanted += [read for read in views[name].reads if read in views and read not in wanted]
    return replace(compiled, views={name: view for name, view in views.items() if name in wanted})


def emitted(step: Step, view: str) -> list[tuple[Any, ...]]:
    """A view's delta in one step: rows with the weight at the end."""
    delta = step.view_deltas.get(view)
    return [] if delta is None else sorted((tuple(row.values()) for row in delta.to_arrow().to_pylist()), key=repr)
