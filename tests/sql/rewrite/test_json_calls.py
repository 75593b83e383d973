"""JSON_EACH_*, VARIANT_FILTER and VARIANT_MAP."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.sql.rewrite.json_calls import JSON_CALLS
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.edits import Edited

if TYPE_CHECKING:
    from airflow_pipelines.engine.spark.sessions import SparkSessions

VALUES: dict[str, Any] = {
    "json_each_bigint(parse_json(j))": {"a": 1, "b": 2},
    'json_each_double(parse_json(\'{"a": 1.5, "b": 2, "c": "3"}\'))': {"a": 1.5, "b": 2.0},
    "json_each_string(parse_json(j))": {"s": "7", "d": "2024-01-02", "t": "10:11:12"},
    "json_each_boolean(parse_json(j))": {"y": True},
    "json_each_date(parse_json(j))": {"d": dt.date(2024, 1, 2)},
    "json_each_time(parse_json(j))": {"t": dt.time(10, 11, 12)},
    "json_each_timestamp(parse_json(j))": {"d": dt.datetime(2024, 1, 2)},
    'json_each_bigint(parse_json(\'{"a": 9007199254740993, "b": 9007199254740993.5}\'))': {"a": 9007199254740993},
    "json_each_bigint(parse_json('[1]'))": {},
    "json_each_bigint(cast(null as variant))": None,
    "to_json(variant_filter(parse_json(j), (k, x) -> schema_of_variant(x) = 'BIGINT'))": '{"a":1}',
    "to_json(variant_filter(parse_json(j), (k, x) -> cast(k as varchar) like 's%'))": '{"s":"7"}',
    "to_json(variant_filter(parse_json('5'), (k, x) -> k is null and cast(x as int) = 5))": "5",
    "to_json(variant_filter(parse_json('5'), (k, x) -> k = 'x'))": None,
    'to_json(variant_map(parse_json(\'{"b": 1, "a": 2}\'), (k, x) -> cast(x as int) * 2))': '{"a":4,"b":2}',
    "to_json(variant_map(parse_json('{\"b\": 1}'), (k, x) -> cast(null as int)))": '{"b":null}',
    "to_json(variant_map(parse_json('{\"b\": 1}'), (k, x) -> concat(k, '!')))": '{"b":"b!"}',
    "to_json(variant_map(parse_json('5'), (k, x) -> cast(x as int) + 1))": "6",
    "to_json(variant_map(cast(null as variant), (k, x) -> 1))": None,
}
_JSON = '{"a": 1, "b": 2.0, "c": 2.5, "s": "7", "e": 9e30, "n": null, "y": true, "d": "2024-01-02", "t": "10:11:12", "o": {"a": 1}}'


@pytest.mark.core
def test_values(sessions: SparkSessions) -> None:
    items = ", ".join(f"{text} as v{at}" for at, text in enumerate(VALUES))
    query = translate(Edited(f"select {items} from values ('{_JSON}') t(j)"), Definitions())
    (row,) = sessions.small.sql(query.text).collect()
    assert dict(zip(VALUES, row, strict=True)) == VALUES


def test_every_name_has_a_value() -> None:
    assert all(any(name in text for text in VALUES) for name in JSON_CALLS)
