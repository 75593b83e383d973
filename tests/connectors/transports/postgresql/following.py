"""Readers that follow a table of PostgreSQL, and what they read."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from airflow_pipelines.connectors.base import (
    ConnectorFailure,
    InputChunk,
    InputTransport,
)
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.relations import col, relation
from tests.connectors.transports.postgresql.sources import opened, rows
from tests.fixtures.postgresql import Database

KEYED = replace(relation(col("id", "BIGINT", null=False), col("name", "VARCHAR")), primary_key=("id",))


BAG = relation(col("id", "BIGINT"), col("name", "VARCHAR"))


TABLE = ("CREATE TABLE t (id int PRIMARY KEY, name text)", "CREATE PUBLICATION p FOR TABLE t")


FULL = "ALTER TABLE t REPLICA IDENTITY FULL"


def follow(database: Database, schema: RelationSchema = KEYED, position: Any = None, **options: Any) -> InputTransport:
    config = {"uri": database.url, "publication": "p", "source_table": "t", **options}
    return opened(schema, "postgres_cdc_input", position, **config)


def read_until(source: InputTransport, done: Callable[[list[InputChunk]], bool], max_records: int = 1000) -> list[InputChunk]:
    chunks: list[InputChunk] = []
    deadline = time.monotonic() + 30
    while not done(chunks):
        assert time.monotonic() < deadline, rows(*chunks)
        chunk = source.read(max_records, 0.2)
        if chunk is not None:
            chunks.append(chunk)
    return chunks


def read_rows(source: InputTransport, count: int, max_records: int = 1000) -> list[InputChunk]:
    """Chunks with at least so many changes."""
    return read_until(source, lambda chunks: sum(chunk.records for chunk in chunks) >= count, max_records)


def read_first(source: InputTransport) -> InputChunk:
    return read_until(source, lambda chunks: bool(chunks))[0]


def read_nothing(source: InputTransport) -> None:
    for _ in range(3):
        assert source.read(1000, 0.1) is None


def plain(*chunks: InputChunk) -> list[tuple[Any, ...]]:
    """Operation, id and name of each change."""
    return [(row["__op"], row["id"], row["name"]) for row in rows(*chunks)]


def failure_of(source: InputTransport) -> ConnectorFailure:
    with pytest.raises(ConnectorFailure) as failure:
        read_until(source, lambda _: False)
    source.close()
    return failure.value


def slot_of(database: Database) -> str:
    [[name]] = database.rows("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
    return str(name)


def wait_until_slots_are_free(database: Database) -> None:
    """Wait until the server has noticed that readers have closed their connections. Until then it refuses to drop their slots."""
    deadline = time.monotonic() + 30
    while database.rows("SELECT 1 FROM pg_replication_slots WHERE database = current_database() AND active"):
        assert time.monotonic() < deadline, "a slot of a closed reader is still in use after 30 s"
        time.sleep(0.02)


LARGE = "string_agg(md5(i::text), '')"


def confirmed(database: Database) -> str:
    [[place]] = database.rows("SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE database = current_database()")
    return str(place)


ODD = replace(
    relation(
        col("id", "BIGINT", null=False),
        col("f", "DOUBLE"),
        col("n", "DOUBLE"),
        col("r", "REAL"),
        col("d", "DATE"),
        col("ts", "TIMESTAMP"),
        col("t", "TIME"),
        col("i", "INTERVAL_DAY_TO_SECOND"),
        col("m", "DECIMAL", precision=10, scale=2),
    ),
    primary_key=("id",),
)


ODD_TABLE = (
    "CREATE TABLE t (id int PRIMARY KEY, f float8, n numeric, r float4, d date, ts timestamp, t time, i interval, m numeric)",
    TABLE[1],
    "INSERT INTO t SELECT g, 1.5, 1.5, 1.5, '2024-02-29', '2024-02-29', '01:00', '1 day', 1 FROM generate_series(1, 9) AS g",
)


INVALID = {
    "d": ("'infinity'", "'0044-03-15 BC'", "'12024-01-01'"),
    "ts": ("'-infinity'",),
    "t": ("'24:00:00'",),
    "i": ("'1 mon 2 days'",),
    "m": ("'NaN'",),
    "n": ("1e400",),
}
