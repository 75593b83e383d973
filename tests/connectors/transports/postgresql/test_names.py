"""Names of tables as people write them."""

from __future__ import annotations

import pytest

from airflow_pipelines.connectors.transports.postgresql.names import parts, quoting_hint


@pytest.mark.parametrize(
    ("name", "schema", "table"),
    [
        ("orders", None, "orders"),
        ("Sales.Orders", "sales", "orders"),
        ('sales."Orders"', "sales", "Orders"),
        ('"a.b"."my ""table"""', "a.b", 'my "table"'),
        ("my table", None, "my table"),
    ],
)
def test_a_name_is_read_as_in_sql(name: str, schema: str | None, table: str) -> None:
    assert parts(name) == (schema, table)


def test_capitals_without_quotes_are_named_when_there_is_no_such_table() -> None:
    assert quoting_hint("Sales.Orders").endswith('is it "Sales"."Orders"?')
    assert quoting_hint("sales.orders") == ""
    assert quoting_hint('"Orders"') == ""
