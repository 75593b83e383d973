"""Programs whose views are compared with Spark's batch answers after every step of a random stream of changes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from airflow_pipelines.engine.limits import DEFAULT_LIMITS, Limits
from airflow_pipelines.engine.spark.arrow_frames import arrow_frame
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.intervals import has_months
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.spark.sessions import SMALL_CONF, SparkSessions, sibling
from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.changes import Op
from tests.engine.programs import Running, emitted
from tests.engine.random_changes import comparable

Row = tuple[Any, ...]


class Compared:
    """A running program, its tables as they should be, and the sums of what its views emitted."""

    def __init__(
        self,
        text: str,
        sessions: SparkSessions,
        rows: Mapping[str, Callable[[random.Random], Row]],
        seed: int = 0,
        limits: Limits = DEFAULT_LIMITS,
        strategy: str = "auto",
    ) -> None:
        """Start a program; ``rows`` makes a random row of each table."""
        self.running = Running(text, sessions, strategy, limits=limits)
        self.session = sibling(sessions.small, SMALL_CONF)
        self.rows = rows
        self.random = random.Random(seed)
        self.tables: dict[str, list[Row]] = {name: [] for name in rows}
        self.sums: dict[str, Counter[Row]] = {name: Counter() for name in self.running.program.views}

    def step(self, inserts: int, deletes: int = 0) -> None:
        """Change every table by some random rows, and compare."""
        changes = []
        for name, make in self.rows.items():
            held = self.tables[name]
            append_only = self.running.program.tables[name].append_only
            gone = [] if append_only else self.random.sample(held, min(deletes, len(held)))
            new = [make(self.random) for _ in range(inserts)]
            for row in gone:
                held.remove(row)
            held += new
            changes += [self.running.changes(name, *gone, op=Op.DELETE)] if gone else []
            changes += [self.running.changes(name, *new)] if new else []
        step = self.running.step(*changes)
        for name, rows in self.sums.items():
            for *row, weight in emitted(step, name):
                rows[comparable(row)] += weight
        self.running.circuit.maintain()
        self.check()

    def check(self) -> None:
        """Every view must hold Spark's answer to its query."""
        for name, rows in self.tables.items():
            self._declare(name, rows)
        for name, plan in self.running.program.plans.items():
            answer = self.session.sql(plan.query)
            table = collected(answer)
            self._read_as(name, table, answer.schema)
            wanted = Counter(comparable(row.values()) for row in table.to_pylist())
            found = Counter({row: weight for row, weight in self.sums[name].items() if weight})
            assert found == wanted, (name, plan.query, [stage.strategy for stage in plan.stages])

    def _declare(self, name: str, rows: Sequence[Row]) -> None:
        schema = self.running.program.schemas[name]
        columns = [pa.array([row[at] for row in rows], column.type) for at, column in enumerate(schema.arrow)]
        self._read_as(name, pa.table(columns, names=schema.arrow.names), spark_schema(schema))

    def _read_as(self, name: str, table: Any, schema: StructType) -> None:
        frame = arrow_frame(self.session, table, schema) if has_months(schema) else self.session.createDataFrame(table, schema)
        frame.createOrReplaceTempView(quote(name))

    def strategies(self, view: str) -> list[str]:
        """How each stage of a view is computed."""
        return [stage.strategy for stage in self.running.program.plans[view].stages]
