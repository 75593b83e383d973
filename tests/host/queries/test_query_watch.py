"""The decision of the watch which requests are cancelled; :mod:`tests.host.queries.test_queries` has it with Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.spark.application import MemoryUsage
from airflow_pipelines.host.queries import query_watch
from airflow_pipelines.host.queries.query_watch import QueryWatch


@dataclass
class Request:
    group: str
    cancelled: list[Problem] = field(default_factory=list)

    def cancel(self, problem: Problem) -> None:
        self.cancelled.append(problem)


@dataclass
class Heap:
    used: int

    def usage(self) -> MemoryUsage:
        return MemoryUsage(self.used << 20, 100 << 20)


def test_a_request_is_cancelled_only_if_the_memory_stays_full(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Any = None
    monkeypatch.setattr(query_watch, "collect_garbage", lambda _: None)
    watch, heap = QueryWatch(nothing, 0.9), Heap(95)
    greedy, later = Request("greedy"), Request("later")

    def check(*requests: Request) -> list[str]:
        watch._save_memory(list(requests), heap)  # type: ignore[arg-type]
        return [each.group for each in requests if each.cancelled]

    assert not check(greedy)
    assert check(greedy, later) == ["greedy"]
    heap.used = 10  # what the first one has used is free
    assert not check(later)
    heap.used = 95
    assert not check(later)
    assert check(later) == ["later"]
    assert "95 of 100 MiB" in later.cancelled[0].message
