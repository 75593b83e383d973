"""What the views of a program should hold: Spark's batch answers, value by value and representation by representation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from airflow_pipelines.engine.batch import WEIGHT, Batch
from airflow_pipelines.engine.spark.collecting import collected
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.spark.sessions import SMALL_CONF, SparkSessions, sibling
from airflow_pipelines.engine.values.canonical import in_canonical_form
from airflow_pipelines.program.names import quote
from tests.engine.programs import Running
from tests.engine.random_changes import exact

Rows = Counter[tuple[Any, ...]]


class Oracle:
    """Spark's batch answers over the tables as they should be."""

    def __init__(self, running: Running, queries: Mapping[str, str], sessions: SparkSessions) -> None:
        self.running = running
        self.session = sibling(sessions.small, SMALL_CONF)
        self.queries = queries

    def answers(self, contents: Mapping[str, Sequence[tuple[Any, ...]]]) -> dict[str, Rows]:
        """Every view's rows."""
        for name, rows in contents.items():
            arrow = self.running.program.schemas[name].arrow
            columns = [in_canonical_form(pa.array([row[at] for row in rows], column.type)) for at, column in enumerate(arrow)]
            schema = spark_schema(self.running.program.schemas[name])
            self._declare(name, self.session.createDataFrame(pa.table(columns, names=arrow.names), schema))
        answers = {}
        for name, query in self.queries.items():
            table = collected(self.session.sql(query))
            # A view's rows are Spark's in canonical form.
            table = pa.table([in_canonical_form(column) for column in table.columns], schema=table.schema)
            self._declare(name, self.session.createDataFrame(table.combine_chunks()))
            answers[name] = Counter(exact(row.values()) for row in table.to_pylist())
        return answers

    def _declare(self, name: str, rows: DataFrame) -> None:
        """Declare a relation as a view of its own over its rows.

        If a query reads it more than once, each has other columns for Spark. If Spark has to rename them itself, it refuses some
        queries with aggregates in HAVING.
        """
        rows.createOrReplaceTempView(quote(f"rows of {name}"))
        self.session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {quote(name)} AS SELECT * FROM {quote(f'rows of {name}')}")


def rows_of(delta: Batch | None) -> Rows:
    """A delta's rows with their weights."""
    rows: Rows = Counter()
    for row in delta.to_arrow().to_pylist() if delta is not None else ():
        weight = row.pop(WEIGHT)
        rows[exact(row.values())] += weight
    return rows
