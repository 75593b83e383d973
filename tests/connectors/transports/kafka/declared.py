"""Connectors of Kafka as programs declare them, with their formats."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.opening import open_input, open_output
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.changes import OP
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.contexts import PIPELINE
from tests.connectors.relations import col, relation
from tests.fixtures.kafka import Kafka

PEOPLE = relation(col("id", "BIGINT", null=False), col("name", "VARCHAR"), name="people")
PATIENCE_S = 30.0
Open = Callable[..., Any]


def declared(
    kafka: Kafka, topic: str, direction: ConnectorDirection, index: str | None, form: str = "avro", **options: Any
) -> Connector:
    """A declaration."""
    is_input = direction is ConnectorDirection.INPUT
    more = {"start_from": "earliest", "enable.partition.eof": True} if is_input else {}
    return Connector(
        relation="people",
        name=topic,
        direction=direction,
        transport="kafka_input" if is_input else "kafka_output",
        transport_config={"topic": topic, "bootstrap.servers": kafka.address, **more},
        format=form,
        format_config=options,
        options={} if index is None else {"index": index},
    )


@pytest.fixture
def opened(kafka: Kafka) -> Iterator[Open]:
    """Opens an input, or an output when a key is given, which may be empty."""
    made: list[Any] = []

    def new(
        topic: str,
        *,
        key: tuple[str, ...] | None = None,
        schema: RelationSchema = PEOPLE,
        form: str = "avro",
        config: dict[str, Any],
    ) -> Any:
        if key is None:
            connector = declared(kafka, topic, ConnectorDirection.INPUT, None, form, **config)
            transport: Any = open_input(connector, schema, NO_REFERENCES, PIPELINE)
        else:
            connector = declared(kafka, topic, ConnectorDirection.OUTPUT, "i" if key else None, form, **config)
            transport = open_output(connector, schema, NO_REFERENCES, PIPELINE, key)
        made.append(transport)
        transport.open(None if key is None else False)
        return transport

    yield new
    for transport in made:
        transport.close()


def read(source: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """All rows of an input until its end, and what was wrong."""
    rows: list[dict[str, Any]] = []
    errors: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    while True:
        assert time.monotonic() < deadline, (rows, errors)
        chunk = source.read(1000, 0.2)
        if chunk is None:
            continue
        if chunk.changes is not None:
            rows += chunk.changes.rows.drop_columns([OP]).to_pylist()
        errors += [error.message for error in chunk.parse_errors]
        if chunk.end_of_input:
            return rows, errors
