"""Linear stages whose results have many more rows than what they read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from unittest.mock import patch

import pyarrow as pa
import pytest

from airflow_pipelines.engine.limits import Limits
from airflow_pipelines.engine.spark.collecting import FrameCollector
from airflow_pipelines.engine.spark.driver_plans import DriverPlan
from airflow_pipelines.engine.spark.sessions import SparkSessions
from tests.engine.programs import Running, emitted

FAN_OUT = 50


@pytest.fixture
def collected() -> Iterator[list[int]]:
    """The rows of each result that came into this process."""
    sizes: list[int] = []
    with ExitStack() as patches:
        for whole, name in ((DriverPlan, "run"), (FrameCollector, "collected")):
            found = getattr(whole, name)

            def counting(self: object, *given: object, found: Callable[..., pa.Table] = found) -> pa.Table:
                table = found(self, *given)
                sizes.append(table.num_rows)
                return table

            patches.enter_context(patch.object(whole, name, counting))
        yield sizes


@pytest.mark.core
def test_few_rows_that_become_many_do_not_come_into_memory(sessions: SparkSessions, collected: list[int]) -> None:
    program = """
        create table t (id int, n int);
        create materialized view views as select id, x from t lateral view explode(sequence(1, n)) e as x where n > 0;
        create materialized view generators as select id, explode(sequence(1, n)) as x from t where n > 0;
    """
    running = Running(program, sessions, limits=Limits(small_rows=FAN_OUT, fan_out=FAN_OUT))
    few = running.insert("t", (1, FAN_OUT))
    many = running.insert("t", (2, 1000))
    for view in ("views", "generators"):
        assert few.deltas[view].table is not None
        assert sorted(emitted(few, view)) == [(1, x, 1) for x in range(1, FAN_OUT + 1)]
        assert many.deltas[view].table is None
        assert sorted(emitted(many, view)) == [(2, x, 1) for x in range(1, 1001)]
    assert max(collected) == FAN_OUT + 1, "a row more than the limit tells that there are too many"
