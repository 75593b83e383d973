"""Tasks that have had nothing to read yet hold nobody's event time back."""

from __future__ import annotations

import pytest

from airflow_pipelines.datastream.collecting import CollectSink
from airflow_pipelines.datastream.functions import KeyedProcessFunction
from airflow_pipelines.streams.clock import ManualClock
from airflow_pipelines.streams.elements import MIN_TIMESTAMP
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.snapshots import Snapshot
from airflow_pipelines.streams.sources import Polled, Source, SourceReader
from tests.datastream.programs import environment
from tests.streams.test_watermarks import STRATEGY


class _Parts(Source):
    """As a folder that is watched: each task has a part of it, which may have nothing for a long time."""

    is_bounded = False

    def __init__(self, tasks):
        self.waiting = {task: [] for task in range(tasks)}

    def splits(self, parallelism):
        return range(parallelism)

    def open(self, split, position):
        return _Part(self.waiting[split], position or False)


class _Part(SourceReader):
    def __init__(self, waiting, has_input):
        self.waiting = waiting
        self.has_input = has_input

    def poll(self, limit):
        values = list(self.waiting)
        self.waiting.clear()
        self.has_input = self.has_input or bool(values)
        return Polled(values)

    def position(self):
        return self.has_input


class _Watermark(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timer_service().current_watermark()


class _Run:
    def __init__(self, of_source: bool) -> None:
        env = environment(2)
        self.source, self.sink, self.clock = _Parts(2), CollectSink(), ManualClock(0)
        stream = env.from_source(self.source, STRATEGY if of_source else None, "parts")
        if not of_source:
            stream = stream.assign_timestamps_and_watermarks(STRATEGY)
        node = stream.key_by(lambda _: 0).process(_Watermark()).sink_to(self.sink)._node
        self._plan = plan_of(env.graph, [node.id], Defaults(2))
        self.runner = LocalRunner(self._plan, clock=self.clock)
        env._take_sinks()

    def step(self, **parts: list[int]) -> list[tuple[int, int]]:
        for part, values in parts.items():
            self.source.waiting[int(part[1:])] += values
        self.clock.advance(200)
        self.runner.step()
        found = list(self.sink.values)
        self.sink.values.clear()
        return found

    def restart(self) -> None:
        kept = self.runner.snapshot().to_bytes()
        self.runner.close()
        self.runner = LocalRunner(self._plan, clock=self.clock, snapshot=Snapshot.from_bytes(kept))


@pytest.mark.parametrize("of_source", [True, False])
@pytest.mark.parametrize("restarted", [True, False])
def test_a_task_whose_part_has_had_nothing_yet_holds_nobody_back(of_source: bool, restarted: bool) -> None:
    run = _Run(of_source)
    assert run.step() == []
    assert run.step(p0=[10, 20]) == [(10, MIN_TIMESTAMP), (20, MIN_TIMESTAMP)]
    if restarted:
        run.restart()
    assert run.step(p0=[30]) == [(30, 19)]
    assert run.step(p1=[35]) == [(35, 29)]
    run.step(p0=[40])
    if restarted:
        run.restart()
    assert run.step(p0=[50]) == [(50, 34)]  # the other part has given something, and is waited for from now on
    run.runner.close()
