"""The tables of Nexmark as inputs: the rows of one stream, in pieces, from any place on, at a rate."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.connectors.transports.nexmark.generator import Generator
from airflow_pipelines.connectors.transports.nexmark.transport import Nexmark, NexmarkOptions
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.formats.tables import TableParser
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.relations import col, relation

BID = relation(col("auction", "BIGINT"), col("Price", "DECIMAL", precision=20, scale=0), col("date_time", "TIMESTAMP"), name="bid")


def opened(schema: RelationSchema, position: Position | None = None, **config: Any) -> Nexmark:
    source = Nexmark(NexmarkOptions.model_validate(config), TableParser(schema))
    source.open(position)
    return source


def rows_of(source: Nexmark, at_once: int) -> tuple[list[dict[str, Any]], list[Position]]:
    rows: list[dict[str, Any]] = []
    positions = []
    while True:
        chunk = source.read(at_once, 1)
        assert chunk is not None
        if chunk.changes is not None:
            rows += chunk.changes.rows.drop_columns(["__op"]).to_pylist()
            assert chunk.records == chunk.changes.rows.num_rows <= at_once
        positions.append(chunk.position)
        if chunk.end_of_input:
            return rows, positions


@pytest.mark.parametrize("events", [0, 1, 4, 5, 50, 51, 1_234])
@pytest.mark.parametrize("table", ["person", "auction", "bid"])
def test_a_table_has_those_of_the_events_that_are_its_own(table: str, events: int) -> None:
    schema = relation(col("date_time", "TIMESTAMP"), col("extra", "VARCHAR"), name=table)
    rows, _ = rows_of(opened(schema, table=table, options={"events": events, "seed": 3}), 100)
    made = Generator(seed=3).events(0, events).tables[table].select(["date_time", "extra"])
    assert pa.Table.from_pylist(rows, schema=made.schema).equals(made)


def test_a_restart_goes_on_with_the_row_that_would_have_come() -> None:
    whole, positions = rows_of(opened(BID, table="Bid", options={"events": 500}), 77)
    assert len(whole) == 460
    rest, _ = rows_of(opened(BID, positions[1], table="bid", options={"events": 500}), 1_000)
    assert rest == whole[2 * 77 :]


def test_rows_come_no_faster_than_the_rate_says() -> None:
    source = opened(BID, table="bid", options={"events": None, "rate": 500})
    begin, rows = time.monotonic(), 0
    while rows < 92:
        chunk = source.read(1_000, 1)
        assert chunk is not None
        rows += chunk.records
    assert (rows - 1) / 460 <= time.monotonic() - begin
    slow = opened(BID, table="bid", options={"rate": 0.001})
    assert slow.read(10, 0.01) is not None
    assert slow.read(10, 0.01) is None


@pytest.mark.parametrize(
    ("config", "schema", "says"),
    [
        ({"table": "bids"}, BID, "'person', 'auction' or 'bid'"),
        ({"table": "bid", "options": {"event": 1}}, BID, "unknown option 'options.event'"),
        ({"table": "auction"}, BID, "no column 'auction'; its columns: id, item_name"),
    ],
)
def test_wrong_declarations_are_refused(config: dict[str, Any], schema: RelationSchema, says: str) -> None:
    with pytest.raises((InvalidOptionError, ValueError), match=says):
        validate(Connector(schema.name, "made", ConnectorDirection.INPUT, "nexmark", config), schema)
