"""For which types of decimals the average over a sum and a count is what Spark's AVG gives."""

from __future__ import annotations

import pytest

from airflow_pipelines.sql.plan.blocks.decimal_average import is_exact


@pytest.mark.parametrize(("precision", "scale"), [(34, 2), (38, 10), (12, 7), (33, 0)])
def test_what_has_too_many_digits_is_left_to_spark(precision: int, scale: int) -> None:
    assert not is_exact(precision, scale)
