"""A release of the engine that plans in another way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from airflow_pipelines.sql.plan.aggregates import Accumulators


@contextmanager
def another_release() -> Iterator[None]:
    """A planner that numbers a sum's accumulators the other way around: names, types and the view's text are the same.

    Programs are compiled once in a process, so that one that was compiled before needs another text, such as with a comment.
    """
    sum_of = Accumulators._sum

    def total_first(self: Accumulators, call: Any, kind: str, result_type: str) -> str | None:
        value = f"CAST(({call.arguments[0]}) AS BIGINT)"
        self._add("BIGINT", f"{value} * __weight", value)
        return sum_of(self, call, kind, result_type)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Accumulators, "_sum", total_first)
        yield
