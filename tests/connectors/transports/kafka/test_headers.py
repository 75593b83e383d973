"""Conditions on the headers of records."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from airflow_pipelines.connectors.transports.kafka.headers import HeaderCondition

HEADERS = [("kind", b"a"), ("kind", b"b"), ("empty", None), ("name", b"\xff"), ("text", "\u00e9\u00e9".encode())]
CONDITION: TypeAdapter[HeaderCondition] = TypeAdapter(HeaderCondition)


def header(name: str, pattern: str) -> dict[str, Any]:
    return {"header": {"name": name, "pattern": pattern}}


A, C = header("kind", "a"), header("kind", "c")


@pytest.mark.parametrize(
    ("condition", "accepted"),
    [
        (A, True),
        (header("kind", "b"), True),
        (C, False),
        (header("Kind", "a"), False),
        (header("kind", "c|b"), True),
        (header("kind", "|"), False),
        (header("empty", ""), True),
        (header("empty", ".+"), False),
        (header("other", ".*"), False),
        (header("name", "."), True),
        (header("name", "\u00ff"), False),
        (header("text", "\u00e9{2}"), True),
        ({"and": [A, header("name", ".*")]}, True),
        ({"and": [A, C]}, False),
        ({"and": []}, True),
        ({"or": [C, A]}, True),
        ({"or": [C]}, False),
        ({"or": []}, False),
        ({"not": C}, True),
        ({"not": {"not": C}}, False),
        ({"and": [{"or": [A, C]}, {"not": {"and": [A, C]}}]}, True),
    ],
)
def test_conditions(condition: dict[str, Any], accepted: bool) -> None:
    read = CONDITION.validate_python(condition)
    assert read.accepts(HEADERS) is accepted
    assert pickle.loads(pickle.dumps(read)).accepts(HEADERS) is accepted, "tasks of a cluster have it, too"


def test_a_record_without_headers_fulfils_only_what_is_negated() -> None:
    assert not CONDITION.validate_python(header("kind", ".*")).accepts(())
    assert CONDITION.validate_python({"not": A}).accepts(())


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ({"kind": "a"}, "a condition is"),
        ({}, "a condition is"),
        ({"and": [A], "or": [C]}, "a condition is"),
        ({"and": [{"xor": []}]}, "a condition is"),
        ([A], "a condition is"),
        (header("kind", "("), "no regular expression"),
        ({"header": {"name": "kind"}}, "pattern"),
    ],
)
def test_a_condition_that_is_none_is_refused(condition: Any, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        CONDITION.validate_python(condition)
