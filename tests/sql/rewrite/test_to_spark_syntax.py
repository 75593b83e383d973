"""Passes over queries that have nothing for them."""

from __future__ import annotations

from typing import Any, cast

import pytest

from airflow_pipelines.sql.rewrite.to_spark_syntax import PASSES
from airflow_pipelines.sql.syntax.edits import Edited


@pytest.mark.parametrize("at", range(len(PASSES)))
def test_a_query_without_the_words_of_a_pass_is_not_even_read(at: int) -> None:
    # Whoever read its tokens would fail at the quote, and whoever asked the analyzer would, too.
    query = Edited("select k, 'a from t")
    assert PASSES[at](query, cast(Any, None)) is query
