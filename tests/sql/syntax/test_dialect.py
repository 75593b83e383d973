"""Trees of queries as sqlglot makes them, but for what Spark reads in another way."""

from __future__ import annotations

import pytest
from sqlglot import exp

from airflow_pipelines.sql.syntax.dialect import DIALECT, check_parser, parse_query


@pytest.mark.parametrize("text", ["CAST(x AS STRING COLLATE unicode_ci)", "CAST(x AS VARCHAR(5) COLLATE UTF8_LCASE)"])
def test_a_collation_of_a_type_is_no_column(text: str) -> None:
    tree = parse_query(f"SELECT {text} AS y FROM t")
    assert [column.name for column in tree.find_all(exp.Column)] == ["x"]
    assert "COLLATE" in tree.sql(DIALECT)


def test_a_build_of_sqlglot_that_cannot_be_extended_is_named() -> None:
    def make_parser() -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    with pytest.raises(ImportError, match="pip uninstall sqlglotc"):
        check_parser(make_parser)
