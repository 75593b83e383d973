"""Ways of evaluation in tests, of which each call is noted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from airflow_pipelines.engine.execution.ways import Declined

T = TypeVar("T")


def noted(way: Callable[..., T], note: Callable[[tuple[Any, ...], T | None], object]) -> Callable[..., T]:
    """Return the same way, of which each call is noted with its arguments and its result, or None if it declines."""

    def call(*given: Any) -> T:
        try:
            result = way(*given)
        except Declined:
            note(given, None)
            raise
        note(given, result)
        return result

    return call
