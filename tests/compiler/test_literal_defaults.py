from __future__ import annotations

import pytest

from airflow_pipelines.compiler.literal_defaults import constant_text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("NULL", None),
        ("40 + 2", "42"),
        ("-(1.50)", "-1.50"),
        ("1e3", "1000"),
        ("'it''s'", "it's"),
        ("DATE '2025-01-01'", "2025-01-01"),
        ("CAST('7' AS INT)", "7"),
        ("NOT TRUE", "false"),
    ],
)
def test_constants(expression: str, text: str | None) -> None:
    assert constant_text(expression) == text


@pytest.mark.parametrize("expression", ["current_timestamp()", "upper('x')", "(", "x"])
def test_what_is_not_a_constant(expression: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the parser's own words differ
        constant_text(expression)
