"""Which groups by session are made of columns as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_pipelines.sql.plan.blocks.session_totals import session_totals
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate, Call, KeptValue
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Item, Scan, Select, Source
from airflow_pipelines.sql.plan.ir.session_totals import SessionTime

ROWS = Select(
    (Source("t", Scan("t", ("u", "at", "n"))),),
    (Item("__c0", Expression("`t`.`u`")), Item("__c1", Expression("`t`.`at`")), Item("__c2", Expression("`t`.`n`"))),
)
NODE = Aggregate(
    ROWS,
    (Item("__k0", Expression("__c0")), Item("__k1", Expression("SESSION_WINDOW(__c1, '10 seconds')"))),
    ("bigint", "struct<start:timestamp,end:timestamp>"),
    (Call("__r0", Expression("COUNT(*)"), "bigint", Expression("__a0")), Call("__r1", Expression("MAX(__c2)"), "int", None)),
    (),
    (
        Item("u", Expression("__k0")),
        Item("n", Expression("__r0")),
        Item("m", Expression("__r1")),
        Item("s", Expression("__k1.`start`")),
        Item("e", Expression("__k1.`end`")),
    ),
    input_types=("bigint", "timestamp", "int"),
)


def _by(session: str) -> Aggregate:
    return replace(NODE, keys=(NODE.keys[0], Item("__k1", Expression(session))))


def test_sessions_of_columns() -> None:
    found = session_totals(NODE)
    assert found is not None
    assert (found.keys, found.time, found.gap) == (("__c0",), "__c1", 10_000_000)
    assert found.outputs == ("__c0", KeptValue("__a0"), KeptValue("__a1max"), SessionTime.START, SessionTime.END)


@pytest.mark.parametrize(
    ("written", "gap"), [("1 second", 10**6), ("interval 90 minutes", 5_400_000_000), ("INTERVAL 24 HOURS", 86_400_000_000)]
)
def test_gaps_of_a_fixed_length(written: str, gap: int) -> None:
    found = session_totals(_by(f"session_window(__c1, '{written}')"))
    assert found is not None
    assert found.gap == gap


@pytest.mark.parametrize(
    "session",
    [
        # Days and months have no fixed length, and what is not positive is Spark's to refuse.
        "SESSION_WINDOW(__c1, '1 day')",
        "SESSION_WINDOW(__c1, '1 month')",
        "SESSION_WINDOW(__c1, '0 seconds')",
        "SESSION_WINDOW(__c1, '-1 seconds')",
        "SESSION_WINDOW(__c1, '1 minute 5 seconds')",
        "SESSION_WINDOW(__c1, __c2)",
        "SESSION_WINDOW(__c1 + INTERVAL 1 SECOND, '10 seconds')",
        "SESSION_WINDOW(__c9, '10 seconds')",
        "WINDOW(__c1, '10 seconds')",
    ],
)
def test_other_sessions_are_left_to_spark(session: str) -> None:
    assert session_totals(_by(session)) is None


@pytest.mark.parametrize(
    "node",
    [
        replace(NODE, having="__r0 > 1"),
        replace(NODE, keys=(Item("__k0", Expression("__c0 + 1")), NODE.keys[1])),
        replace(NODE, items=(Item("u", Expression("__k0 + 1")),)),
        replace(NODE, items=(Item("u", Expression("__k1")),)),
        replace(NODE, items=(Item("u", Expression("__r0 + 1")),)),
        replace(
            NODE,
            calls=(Call("__r0", Expression("COUNT(*) FILTER(WHERE __c2 > 1)"), "bigint", Expression("__a0")),),
            items=(Item("n", Expression("__r0")),),
        ),
        replace(
            NODE,
            calls=(Call("__r0", Expression("AVG(__c2)"), "double", Expression("__a0")),),
            items=(Item("n", Expression("__r0")),),
        ),
        replace(NODE, calls=(Call("__r0", Expression("MAX_BY(__c2, __c1)"), "int", None),), items=(Item("n", Expression("__r0")),)),
    ],
)
def test_expressions_are_left_to_spark(node: Aggregate) -> None:
    assert session_totals(node) is None
