"""Runs the views of a theme over the eight steps and compares them with Spark's batch answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.batch import WEIGHT
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.spark.sessions import SMALL_CONF, SparkSessions, sibling
from airflow_pipelines.engine.step import Step
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.changes import TableChanges
from airflow_pipelines.rows.schema import RelationSchema
from tests.differential.data import TABLES, Part, Row, canonical, declaration, steps
from tests.differential.suite import Theme, View
from tests.engine.programs import Running
from tests.engine.random_changes import comparable, multiset, net

Rows = Counter[tuple[Any, ...]]

FULL_AT = (6, 7)
"""The steps (from 0) after which the full strategy is compared too; it takes the changes of the steps between them at once."""
ORACLE_CONF: Mapping[str, str] = {**SMALL_CONF, "spark.sql.timestampType": "TIMESTAMP_NTZ"}
"""Spark as it is, but for the type that TIMESTAMP stands for in a program."""
MOST_ROUNDS = 30
"""No recursion of the suite goes further."""
THREADS = 2
"""Steps for which the oracle is asked at the same time, while the engine works."""


class Oracle:
    """Spark's batch answers over the tables after each step: one session per step, in which the tables are temporary views."""

    def __init__(self, sessions: SparkSessions) -> None:
        """Declare the tables of all steps."""
        compiled = compile_program("".join(declaration(name) for name in TABLES), sessions)
        self.sessions: list[SparkSession] = []
        for _, contents in steps(list(TABLES)):
            session = sibling(sessions.small, ORACLE_CONF)
            for name, rows in contents.items():
                _declare(session, compiled.schemas[name], rows)
            self.sessions.append(session)

    def answers(self, theme: Theme, step: int, schemas: Mapping[str, RelationSchema]) -> dict[str, Rows]:
        """Every view's rows after a step, by its query for Spark. Views that other views read become relations."""
        session = self.sessions[step]
        self._settle(theme, session, schemas)
        found = {}
        for view in theme.views:
            rows = _answer(session, view, theme)
            found[view.name] = multiset(rows)
            if view.name in theme.read - theme.recursive:
                _declare(session, schemas[view.name], rows)
        return found

    def types(self, query: str) -> list[str]:
        """The types of a query's columns."""
        return [column.dataType.simpleString() for column in self.sessions[0].sql(query).schema.fields]

    def _settle(self, theme: Theme, session: SparkSession, schemas: Mapping[str, RelationSchema]) -> None:
        """Give the recursive views their smallest fixed point: from nothing on, ask their queries until they grow no more."""
        circle = [view for view in theme.views if view.name in theme.recursive]
        held: dict[str, Rows] = {view.name: Counter() for view in circle}
        for view in circle:
            _declare(session, schemas[view.name], [])
        due = circle
        for _ in range(MOST_ROUNDS):
            grown = set()
            for view in due:
                rows = _answer(session, view, theme)
                if multiset(rows) != held[view.name]:
                    held[view.name] = multiset(rows)
                    _declare(session, schemas[view.name], rows)
                    grown.add(view.name)
            due = [view for view in circle if any(theme.reads(name, view.query) for name in grown)]
            if not due:
                return
        raise AssertionError(f"{theme.name}: no fixed point after {MOST_ROUNDS} rounds")


def _answer(session: SparkSession, view: View, theme: Theme) -> list[Row]:
    """A view's rows; one that is declared recursive is a set."""
    return _rows(session, f"select distinct * from ({view.spark})" if view.name in theme.recursive else view.spark)


def _rows(session: SparkSession, query: str) -> list[Row]:
    return [tuple(row.values()) for row in session.sql(query).toArrow().to_pylist()]


def _declare(session: SparkSession, schema: RelationSchema, rows: Sequence[Row]) -> None:
    held = [canonical(row) for row in rows]
    columns = [pa.array([row[at] for row in held], column.type) for at, column in enumerate(schema.arrow)]
    table = pa.table(columns, names=schema.arrow.names)
    session.createDataFrame(table, spark_schema(schema)).createOrReplaceTempView(quote(schema.name))


@dataclass
class Followed:
    """A running program and the sum of what its views emitted."""

    running: Running
    sums: dict[str, Rows] = field(default_factory=lambda: defaultdict(Counter))

    def step(self, parts: Sequence[Part]) -> None:
        """Change the tables, and add up what the views emit."""
        self._add(self.running.step(*(_changes(self.running, part) for part in parts)))
        self.running.circuit.maintain()

    def _add(self, step: Step) -> None:
        for name, delta in step.view_deltas.items():
            for row in delta.to_arrow().to_pylist():
                weight = row.pop(WEIGHT)
                self.sums[name][comparable(row.values())] += weight

    def differences(self, expected: Mapping[str, Rows]) -> dict[str, str]:
        """The views whose sums or contents are not what they should be."""
        found = {}
        for name, rows in expected.items():
            summed = Counter({row: weight for row, weight in self.sums[name].items() if weight})
            if summed != rows:
                found[name] = f"the sum of deltas has too much {_minus(summed, rows)}, too little {_minus(rows, summed)}"
            elif name in self.running.circuit.kept:
                stored = net(self.running.circuit.snapshot.traces[name], comparable)
                if stored != {row: (weight,) for row, weight in rows.items()}:
                    found[name] = f"the contents are {stored}, and should be {dict(rows)}"
        return found

    def left(self) -> dict[str, Any]:
        """What the traces and states hold."""
        snapshot = self.running.circuit.snapshot
        held = {f"trace {name}": net(trace, comparable) for name, trace in snapshot.traces.items()}
        return held | {f"state {name}": net(trace, comparable) for name, trace in snapshot.all_states().items()}


def _changes(running: Running, part: Part) -> TableChanges:
    return running.changes(part.table, *part.rows, op=part.op)


def _minus(one: Rows, other: Rows) -> Rows:
    return Counter({row: one[row] - other[row] for row in one if one[row] > other[row]})


def differences(theme: Theme, sessions: SparkSessions, oracle: Oracle) -> dict[str, str]:
    """Run a theme in both strategies; the views that differ from Spark's answer, with the first difference of each."""
    compiled = compile_program("".join(map(declaration, theme.tables)) + theme.text, sessions)
    auto = Followed(Running("", sessions, compiled=compiled))
    full = Followed(Running("", sessions, "full", compiled))
    found: dict[str, str] = {}
    waiting: list[Part] = []
    with ThreadPoolExecutor(THREADS) as pool:
        answers = [pool.submit(oracle.answers, theme, number, compiled.schemas) for number in range(len(oracle.sessions))]
        for number, (parts, _) in enumerate(steps(theme.tables)):
            waiting += parts
            auto.step(parts)
            expected = answers[number].result()
            for name, what in auto.differences(expected).items():
                found.setdefault(name, f"step {number + 1}: {what}")
            if number in FULL_AT:
                full.step(waiting)
                waiting = []
                for name, what in full.differences(expected).items():
                    found.setdefault(name, f"step {number + 1}, recomputed in full: {what}")
    found |= _other_types(theme, oracle, compiled.schemas)
    for followed, strategy in ((auto, "auto"), (full, "full")):
        found |= _left(followed, Running("", sessions, strategy, compiled))
        followed.running.circuit.close()
    return found


def _left(followed: Followed, fresh: Running) -> dict[str, str]:
    """The traces and states that hold more or less at the end than those of a program that never had a row."""
    left = followed.left()
    if any(left.values()):
        never = Followed(fresh)
        never.step([])
        empty = never.left()
        left = {name: rows for name, rows in left.items() if rows != empty.get(name, {})}
    fresh.circuit.close()
    return {name: f"left at the end: {rows}" for name, rows in left.items() if rows}


def _other_types(theme: Theme, oracle: Oracle, schemas: Mapping[str, RelationSchema]) -> dict[str, str]:
    """The views whose columns have other types than Spark's; what they read was declared with the first step's answers."""
    found = {}
    for view in theme.views:
        types = [column.dataType.simpleString() for column in spark_schema(schemas[view.name]).fields]
        wanted = oracle.types(view.spark)
        if types != wanted:
            found[view.name] = f"its columns are {types}, Spark's {wanted}"
    return found
