"""PostgreSQL: a table of five million rows read into Arrow, next to a copy by ``psql`` to a file and the reading of that file.

Both end with the same rows as changes of a table, which is all that the engine sees; so neither needs Spark. Then changes of the
table are followed, and the result of a view is written back.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import psycopg
import pyarrow as pa

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.base import InputTransport
from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.opening import open_input, open_output
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType, decimal
from airflow_pipelines.rows.zsets import WEIGHT
from benchmarks.measure import Bound, Measurement, timed
from benchmarks.options import Options
from tools.postgres_server import PostgresServer, find_programs

ROWS: Final = 5_000_000
CHANGES: Final = 200_000
CHUNK: Final = 100_000
PATIENCE_S: Final = 600.0
SCHEMA: Final = RelationSchema(
    "orders",
    (
        Column("id", ColumnType("BIGINT", nullable=False)),
        Column("customer", ColumnType("INTEGER")),
        Column("name", ColumnType("VARCHAR")),
        Column("amount", decimal(12, 2)),
        Column("at", ColumnType("TIMESTAMP")),
        Column("weight", ColumnType("DOUBLE")),
    ),
    primary_key=("id",),
)
TABLE: Final = """
CREATE TABLE orders AS SELECT i::bigint AS id, (i % 1000)::int AS customer, 'the name of row ' || i AS name,
    (i * 1.25)::numeric(12, 2) AS amount, timestamp '2024-01-01' + i * interval '1 second' AS at, i * 0.5::float8 AS weight
FROM generate_series(1, {rows}) AS i
"""
PIPELINE: Final = PipelineReference("benchmark", "benchmark")


def measure(options: Options) -> list[Measurement]:
    """Read, follow and write.

    :param options: how often each figure is taken
    """
    programs = find_programs()
    if programs is None:
        raise RuntimeError("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    server = PostgresServer(programs)
    server.start()
    try:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(TABLE.format(rows=ROWS).encode())
            connection.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
            connection.execute("VACUUM ANALYZE orders")
        return [*_read(server, programs, min(options.repeats, 3)), *_followed(server), *_written(server)]
    finally:
        server.close()


def _read(server: PostgresServer, programs: Path, repeats: int) -> list[Measurement]:
    copied, loaded, queried = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "orders.csv"
        for _ in range(repeats):
            with timed() as watch:
                subprocess.run([programs / "psql", "-q", server.url(), "-c", f"\\copy orders to '{file}' csv"], check=True)
            copied.append(watch.seconds)
            with timed() as watch:
                _read_all(_input("file_input", {"path": str(file)}, "csv"), ROWS)
            loaded.append(watch.seconds)
            with timed() as watch:
                _read_all(_input("postgres_input", {"uri": server.url(), "query": "SELECT * FROM orders"}), ROWS)
            queried.append(watch.seconds)
    by_file = min(copied) + min(loaded)
    return [
        Measurement("connectors.postgres.psql_copy_s", min(copied), "s"),
        Measurement("connectors.postgres.csv_s", min(loaded), "s"),
        Measurement("connectors.postgres.query_s", min(queried), "s"),
        Measurement("connectors_postgres_query_against_copy_and_csv", by_file / min(queried), "x", 1.0, Bound.AT_LEAST),
    ]


def _followed(server: PostgresServer) -> list[Measurement]:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE PUBLICATION p FOR TABLE orders")
        options = {"uri": server.url(), "publication": "p", "source_table": "orders"}
        with timed() as first:
            source = _input("postgres_cdc_input", options)
            _read_rows(source, ROWS)
        for begin in range(0, CHANGES, 1000):
            connection.execute("UPDATE orders SET amount = -amount WHERE id > %s AND id <= %s", [begin, begin + 1000])
        with timed() as changes:
            _read_rows(source, CHANGES)
        source.close()
    return [
        Measurement("connectors.postgres.cdc_first_rows_s", first.seconds, "s"),
        Measurement("connectors.postgres.cdc_changes_per_s", CHANGES / changes.seconds, "rows/s"),
    ]


def _written(server: PostgresServer) -> list[Measurement]:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE target (LIKE orders INCLUDING ALL)")
    declared = Connector(
        "orders",
        "out",
        ConnectorDirection.OUTPUT,
        "postgres_output",
        {"uri": server.url(), "table": "target"},
        options={"index": "i"},
    )
    output = open_output(declared, SCHEMA, NO_REFERENCES, PIPELINE, key=("id",))
    output.open(False)
    numbers = np.arange(CHANGES * 5)
    columns: list[Any] = [
        numbers,
        (numbers % 1000).astype("int32"),
        pa.array(numbers).cast(pa.string()),
        pa.array(numbers).cast(pa.decimal128(19, 0)).cast(pa.decimal128(12, 2), safe=False),
        pa.array(numbers * 1_000_000).cast(pa.timestamp("us")),
        numbers * 0.5,
        np.ones(len(numbers), "int64"),
    ]
    rows = pa.table(columns, names=[*SCHEMA.column_names, WEIGHT])
    with timed() as large:
        output.write(1, ChangesInMemory(rows, ("id",)))
    small = rows.slice(0, 10)
    gone = small.set_column(small.num_columns - 1, WEIGHT, pa.array([-1] * 10, pa.int64()))
    update = pa.concat_tables([gone, small.set_column(5, "weight", pa.array([0.0] * 10))])
    steps = 100
    with timed() as often:
        for step in range(2, 2 + steps):
            output.write(step, ChangesInMemory(update, ("id",)))
    output.close()
    return [
        Measurement("connectors.postgres.written_rows_per_s", len(numbers) / large.seconds, "rows/s"),
        Measurement("connectors.postgres.small_step_ms", often.seconds / steps * 1000, "ms"),
    ]


def _input(transport: str, config: dict[str, Any], format_name: str | None = None) -> InputTransport:
    declared = Connector("orders", "in", ConnectorDirection.INPUT, transport, config, format_name)
    source = open_input(declared, SCHEMA, NO_REFERENCES, PIPELINE)
    source.open(None)
    return source


def _read_all(source: InputTransport, wanted: int) -> None:
    with _closing(source):
        _read_rows(source, wanted)


def _read_rows(source: InputTransport, wanted: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    read = 0
    while read < wanted:
        chunk = source.read(CHUNK, 1.0)
        read += 0 if chunk is None else chunk.records
        if time.monotonic() > deadline:
            raise TimeoutError(f"{read} of {wanted} rows came within {PATIENCE_S:.0f} s")


@contextmanager
def _closing(source: InputTransport) -> Iterator[None]:
    try:
        yield
    finally:
        source.close()


if __name__ == "__main__":
    for figure in measure(Options(repeats=2)):
        print(f"{figure.name} {figure.value:.3f} {figure.unit}")
