"""Changes as messages with keys: rows and what is left of them, columns as bytes, and which declarations cannot work."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.start_check import check_usable
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.relations import Index
from airflow_pipelines.rows.formats.definition import FormatDefinition
from airflow_pipelines.rows.formats.failures import FormatFailure
from airflow_pipelines.rows.formats.json import JsonOptions
from airflow_pipelines.rows.formats.messages import WrittenMessage
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.formats.plain import JSON, RAW
from airflow_pipelines.rows.formats.raw import RawOptions
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.zsets import WEIGHT
from tests.connectors.relations import col, relation

VIEW = relation(col("id", "BIGINT", null=False), col("name", "VARCHAR"), name="people")
INDEX = Index("i", "people", ("id",))
PAIRS = relation(col("k", "VARBINARY"), col("v", "VARCHAR"), name="pairs")


def written(
    form: FormatDefinition, options: Any, view: RelationSchema, key: tuple[str, ...], table: pa.Table
) -> list[WrittenMessage]:
    assert form.new_message_encoder is not None
    encoder = form.new_message_encoder(view, options, key)
    encoder.open("t")
    return [message for part in ChangesInMemory(table, key).tables() for message in encoder.messages(part)]


def people(*rows: tuple[int, str | None, int]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table({name: list(values) for name, values in zip(("id", "name", WEIGHT), columns, strict=True)})


def test_a_row_that_goes_leaves_its_key() -> None:
    table = people((1, "a", -1), (2, "b", -1), (2, "c", 1), (3, None, 1))
    assert written(JSON, JsonOptions(update_format="raw"), VIEW, ("id",), table) == [
        WrittenMessage(b'{"id":1}', None),
        WrittenMessage(b'{"id":2}', b'{"id":2,"name":"c"}'),
        WrittenMessage(b'{"id":3}', b'{"id":3,"name":null}'),
    ]


def test_columns_are_bytes() -> None:
    table = pa.table({"k": [b"\0", b"\1", b"\1"], "v": ["a", "b", "\u00e4"], WEIGHT: [-1, -1, 1]})
    assert written(RAW, RawOptions(), PAIRS, ("k",), table) == [
        WrittenMessage(b"\0", None),
        WrittenMessage(b"\1", "\u00e4".encode()),
    ]


def test_the_fields_of_keys_can_be_chosen() -> None:
    options = JsonOptions(update_format="debezium", key_fields=("NAME",))
    [message] = written(JSON, options, VIEW, (), people((1, "a", 1)))
    assert message == WrittenMessage(b'{"name":"a"}', b'{"payload":{"op":"c","before":null,"after":{"id":1,"name":"a"}}}')
    with pytest.raises(FormatFailure, match="does not have: nope"):
        written(JSON, JsonOptions(key_fields=("nope",)), VIEW, (), people((1, "a", 1)))


@pytest.mark.parametrize(
    "view", [VIEW, relation(col("k", "VARCHAR")), relation(col("k", "VARCHAR"), col("v", "VARCHAR"), col("w", "VARCHAR"))]
)
def test_raw_takes_a_key_and_a_value(view: RelationSchema) -> None:
    with pytest.raises(FormatFailure, match="two columns of type VARCHAR or VARBINARY"):
        written(RAW, RawOptions(), view, (view.column_names[0],), pa.table({}))


def output(transport: str, form: str, index: str | None, **options: Any) -> Connector:
    config = {"topic": "t", "bootstrap.servers": "b"} if transport == "kafka_output" else {"path": "/tmp/x"}
    common = {} if index is None else {"index": index}
    return Connector("people", "c", ConnectorDirection.OUTPUT, transport, config, form, options, common)


@pytest.mark.parametrize(
    ("form", "options", "says"),
    [
        ("json", {"update_format": "raw"}, "connector 'people.c': 'update_format' 'raw' of format 'json' needs an 'index'"),
        ("raw", {}, "needs an 'index', whose column is the key"),
    ],
)
def test_a_message_without_a_key_cannot_say_what_goes(form: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidOptionError, match=says):
        validate(output("kafka_output", form, None, **options), VIEW)
    keyed = output("kafka_output", form, "i", **options)
    validate(keyed, VIEW)
    check_usable(keyed, VIEW, [INDEX])


def test_what_has_no_keys_still_cannot_write_rows() -> None:
    with pytest.raises(Problem, match="'raw' of format 'json' cannot be written"):
        check_usable(output("file_output", "json", "i", update_format="raw"), VIEW, [INDEX])
    with pytest.raises(InvalidOptionError, match="writes each row as a message"):
        validate(output("kafka_output", "raw", "i", mode="lines"), VIEW)
    with pytest.raises(InvalidOptionError, match="a message is one row"):
        validate(output("kafka_output", "json", "i", update_format="raw", array=True), VIEW)
