"""Changes of which some cannot be written: the others are, and updates stay together."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.common_options import OnError
from airflow_pipelines.connectors.http import encode_egress
from airflow_pipelines.connectors.left_out import FittingChanges, LeftOutRows, RowProblem, parts_that_fit, records_that_fit
from airflow_pipelines.rows.formats.avro.changes import avro_changes
from airflow_pipelines.rows.formats.avro.options import AvroOptions
from airflow_pipelines.rows.formats.csv import CsvOptions
from airflow_pipelines.rows.formats.delta import UPDATE
from airflow_pipelines.rows.formats.json import JsonOptions
from airflow_pipelines.rows.formats.keyed_documents import KeyedDocuments
from airflow_pipelines.rows.formats.plain import JSON, CsvEncoder, JsonEncoder
from airflow_pipelines.rows.formats.protobuf.changes import protobuf_changes
from airflow_pipelines.rows.formats.protobuf.options import ProtobufOptions
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.rows.zsets import WEIGHT
from tests.connectors.odd_texts import texts
from tests.connectors.relations import col, relation
from tests.tiers import examples

VIEW = relation(col("id", "BIGINT"), col("name", "VARCHAR"), name="v")
KEY = ("id",)


def changes(*rows: tuple[int | None, Any, int], key: tuple[str, ...] = KEY) -> ChangesInMemory:
    ids, names, weights = zip(*rows, strict=True)
    arrays = [pa.array(ids, pa.int64()), texts(names), pa.array(weights, pa.int64())]
    return ChangesInMemory(pa.table(arrays, names=["id", "name", WEIGHT]), key)


def table(*rows: tuple[int | None, Any, int], key: tuple[str, ...] = KEY) -> pa.Table:
    (found,) = changes(*rows, key=key).tables()
    return found


def shown(left_out: LeftOutRows) -> list[str]:
    errors, count = left_out.take()
    assert count == len(errors)
    return [error.message.partition(":")[0] for error in errors]


@settings(max_examples=examples("LEFT_OUT_EXAMPLES", 200), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["a", "b", "bad"])), unique_by=lambda row: row[0]), st.data())
def test_all_is_written_but_for_what_does_not_fit(rows: list[tuple[int, str]], data: st.DataObject) -> None:
    former = data.draw(st.dictionaries(st.integers(0, 12), st.sampled_from(["x", "bad"])))
    now = dict(rows)
    delta = [(key, old, -1) for key, old in former.items() if now.get(key) != old]
    delta += [(key, new, 1) for key, new in now.items() if former.get(key) != new]
    written = {key: old for key, old in former.items() if old != "bad"}

    def write(part: pa.Table) -> int:
        plain = [row for row in part.to_pylist() if not (row[UPDATE] and row[WEIGHT] < 0)]
        if any(row["name"] == "bad" and row[WEIGHT] > 0 for row in plain):
            raise RowProblem("no")
        for row in plain:
            if row[WEIGHT] > 0:
                written[row["id"]] = row["name"]
            else:
                written.pop(row["id"], None)
        return len(plain)

    left_out = LeftOutRows(KEY)
    for part in changes(*delta).tables() if delta else ():
        list(parts_that_fit(part, write, left_out.add))
    assert written == {key: new for key, new in now.items() if new != "bad"}
    assert left_out.take()[1] == sum(new == "bad" and former.get(key) != new for key, new in now.items())


def _encoders() -> dict[str, Any]:
    avro = {
        "type": "record",
        "name": "v",
        "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": ["null", "string"]}],
    }
    options = {"schema": json.dumps(avro), "skip_schema_id": True}
    registered = avro_changes(VIEW, AvroOptions.model_validate(options), KEY)
    jdbc = avro_changes(VIEW, AvroOptions.model_validate({**options, "update_format": "confluent_jdbc"}), KEY)
    protobuf = protobuf_changes(VIEW, ProtobufOptions.model_validate({"skip_schema_id": True}), KEY)
    assert JSON.new_message_encoder is not None
    raw = JSON.new_message_encoder(VIEW, JsonOptions(update_format="raw"), KEY)
    for each in (registered, jdbc, protobuf):
        each.open("t")
    return {
        "json": JsonEncoder(JsonOptions()),
        "debezium": JsonEncoder(JsonOptions(update_format="debezium")),
        "snowflake": JsonEncoder(JsonOptions(update_format="snowflake")),
        "csv": CsvEncoder(CsvOptions()),
        "keyed": KeyedDocuments(JsonEncoder(JsonOptions()), KEY),
        "raw json": raw,
        "avro": registered,
        "jdbc avro": jdbc,
        "protobuf": protobuf,
    }


@pytest.mark.parametrize("name", _encoders())
def test_a_text_that_is_none_costs_no_other_row(name: str) -> None:
    encoder = _encoders()[name]
    left_out = LeftOutRows(KEY)
    given_rows = table((1, "a", 1), (2, b"\xff", 1), (3, "c", 1))
    assert len(list(records_that_fit(given_rows, encoder.messages, left_out))) == 2
    (error,), count = left_out.take()
    assert (count, error.tag, error.index) == (1, "encode", 0)
    assert error.message.startswith("row (id = 2): ")
    # Of an update the old row goes.
    updated = records_that_fit(table((1, "a", -1), (1, b"\xff", 1), (3, "c", -1), (3, "d", 1)), encoder.messages, left_out)
    assert len(list(updated)) == (3 if name in ("csv", "snowflake") else 2)
    assert shown(left_out) == ["row (id = 1)"]
    assert list(records_that_fit(given_rows.slice(1, 1), encoder.messages, left_out)) == []
    assert left_out.take()[1] == 1
    # What was left out holds up nothing that comes under its key.
    assert list(records_that_fit(table((1, b"\xff", -1), (1, "b", 1)), encoder.messages, left_out))
    assert left_out.take()[1] == 0


def test_a_row_that_does_not_fit_into_a_schema() -> None:
    left_out = LeftOutRows(KEY)
    written = list(records_that_fit(table((1, "a", 1), (2**40, "b", 1), (None, "c", 1)), _encoders()["avro"].messages, left_out))
    assert len(written) == 1
    errors, count = left_out.take()
    assert count == 2
    assert [error.message.partition(":")[0] for error in errors] == ["row (id = null)", f"row (id = {2**40})"]
    assert "does not fit into the schema of format 'avro'" in errors[0].message


def test_a_null_in_an_array_costs_no_other_row_of_protobuf() -> None:
    view = relation(col("id", "BIGINT"), col("a", "ARRAY", component=ColumnType("INTEGER")), name="v")
    encoder = protobuf_changes(view, ProtobufOptions.model_validate({"skip_schema_id": True}), KEY)
    encoder.open("t")
    left_out = LeftOutRows(KEY)
    arrays = [pa.array([1, 2, 3], pa.int64()), pa.array([[1], [2, None], None], pa.list_(pa.int32())), pa.array([1, 1, 1])]
    (rows,) = ChangesInMemory(pa.table(arrays, names=["id", "a", WEIGHT]), KEY).tables()
    assert len(list(records_that_fit(rows, encoder.messages, left_out))) == 2
    (error,), _ = left_out.take()
    assert error.message.startswith("row (id = 2): ")
    assert "column 'a' holds a NULL" in error.message


def test_egress_goes_on_without_a_text_that_is_none() -> None:
    left_out = LeftOutRows(KEY)
    given_changes = changes((1, "a", 1), (2, b"\xff", 1), key=())
    for form, text in (("json", '[{"insert":{"id":1,"name":"a"}}]'), ("csv", "1,a,1\n")):
        (data,) = encode_egress(given_changes, form, left_out=left_out)
        assert (data.text, data.records) == (text, 1)
        assert shown(left_out) == ["row (id = 2)"]
    assert list(encode_egress(changes((2, b"\xff", 1), key=()), "json")) == []


def test_rows_without_a_key_are_shown_as_a_whole() -> None:
    left_out = LeftOutRows()
    list(records_that_fit(table((1, b"a\xff", -1), key=()), JsonEncoder(JsonOptions()).messages, left_out))
    assert shown(left_out) == [r'a row that goes (id = 1, name = "b' + r"'a\\xff'" + '")']


def test_the_newest_hundred_are_listed() -> None:
    left_out = LeftOutRows(KEY)
    bad = table(*((number, b"\xff", 1) for number in range(500)))
    assert list(records_that_fit(bad, JsonEncoder(JsonOptions()).messages, left_out)) == []
    errors, count = left_out.take()
    assert (count, len(errors), errors[0].index, errors[-1].index) == (500, 100, 400, 499)


def test_an_output_may_end_with_the_first() -> None:
    left_out = LeftOutRows(KEY, OnError.STOP)
    with pytest.raises(ConnectorFailure, match=r"row \(id = 2\): .*The output ends, as 'on_error' of the connector says"):
        list(records_that_fit(table((1, "a", 1), (2, b"\xff", 1)), JsonEncoder(JsonOptions()).messages, left_out))


def test_what_is_gone_through_twice_counts_once() -> None:
    def check(part: pa.Table) -> None:
        if 2 in part.column("id").to_pylist():
            raise RowProblem("two")

    left_out = LeftOutRows(KEY)
    fitting = FittingChanges(changes((1, "a", 1), (2, "b", 1), (3, "c", 1)), check, left_out)
    for _ in range(2):
        assert [row["id"] for part in fitting.tables() for row in part.to_pylist()] == [1, 3]
    assert shown(left_out) == ["row (id = 2)"]


def test_the_new_row_of_an_update_is_kept_where_the_old_one_is_the_reason() -> None:
    def check(part: pa.Table) -> None:
        if "bad" in part.column("name").to_pylist():
            raise RowProblem("bad")

    left_out = LeftOutRows(KEY)
    given = changes((1, "bad", -1), (1, "a", 1), (2, "b", -1), (2, "bad", 1), (3, "c", -1), (3, "d", 1))
    fitting = FittingChanges(given, check, left_out)
    found = [(row[UPDATE], row["id"], row["name"], row[WEIGHT]) for part in fitting.tables() for row in part.to_pylist()]
    assert found == [(False, 1, "a", 1), (False, 2, "b", -1), (True, 3, "c", -1), (True, 3, "d", 1)]
    assert shown(left_out) == ["row (id = 2)"]
