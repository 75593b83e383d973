from __future__ import annotations

import pytest

from airflow_pipelines.rows.formats.defaults import is_the_time
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.rows.types import ColumnType


@pytest.mark.parametrize(
    ("kind", "default", "is_time"),
    [
        ("TIMESTAMP", "NOW ( )", False),
        ("TIMESTAMP", "now ()", True),
        ("TIMESTAMP_TZ", "LocalTimestamp", True),
        ("DATE", "current_date", True),
        ("TIME", "current_time()", True),
        ("TIME", "now()", False),
        ("VARCHAR", "now()", False),
        ("TIMESTAMP", "now() + interval 1 day", False),
        ("TIMESTAMP", None, False),
    ],
)
def test_a_call_of_the_clock_in_a_column_of_its_type_is_the_time(kind: str, default: str | None, is_time: bool) -> None:
    assert is_the_time(Column("c", ColumnType(kind), default=default)) is is_time
