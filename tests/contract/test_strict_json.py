"""JSON that is taken, and where the other is wrong."""

from __future__ import annotations

import json
import math
import time

import pytest

from airflow_pipelines.contract.strict_json import MAX_DEPTH, StrictJsonError, keepable, parse_json


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        (b'{"env": {"A": "x\\udfff"}}', "env.A has as character 2 \\udfff"),
        (b'{"env": {"A\\ud800": 1}}', "env.A\\ud800 has"),
        (b'[1, {"a": "\\u0000"}]', "[1].a has U+0000"),
        ('{"a": "\\u0000ä"}'.encode(), "a has as character 1 U+0000"),
        (b'{"a": [0, NaN]}', "a[1] is no finite number"),
        (b"-Infinity", "the top level is no finite number"),
        (b'{"a": 1e999}', "a is no finite number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        (b'{"a": 1', "line 1 column"),
        (b'{"a": "\xed\xbf\xbf"}', "byte 7 (0xed) is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "byte 0 (0xff) is not UTF-8"),
        (b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2), f"is more than {MAX_DEPTH} levels deep"),
        (b'{"a":\n"[[\\"[", "b": ' + b"[" * 100_000, f"line 2 column {14 + MAX_DEPTH} is more than {MAX_DEPTH} levels deep"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(raw: bytes, place: str) -> None:
    with pytest.raises(StrictJsonError) as caught:
        parse_json(raw)
    assert place in str(caught.value)
    str(caught.value).encode()


def test_everything_else_is_taken() -> None:
    value = {"a": ["ä", "\U0001f600", 1.5, 10**30, None, True], "": {}}
    assert parse_json(json.dumps(value).encode()) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode("utf-8-sig")) == value
    deep = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert parse_json(deep) is not None


@pytest.mark.rest
def test_a_large_text_takes_little_time() -> None:
    began = time.process_time()
    parse_json(json.dumps([{"id": number, "name": f"name {number}"} for number in range(100_000)]).encode())
    assert time.process_time() - began < 2


def test_what_was_kept_before_can_be_answered() -> None:
    kept = {"a\udfff": ["x\ud800y", math.nan, math.inf, 1.0, "\U0001f600"], "b": ({"c": -math.inf},)}
    assert keepable(kept) == {"a\ufffd": ["x\ufffdy", None, None, 1.0, "\U0001f600"], "b": [{"c": None}]}
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    json.dumps(keepable(deep), allow_nan=False).encode()
