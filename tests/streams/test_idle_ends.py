"""Inputs that are idle when they end, or when others do: what waits comes at the end of all, and nothing of them is late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import pytest

from airflow_pipelines.datastream import DataStream, Duration, WatermarkStrategy
from airflow_pipelines.datastream.collecting import CollectSink
from airflow_pipelines.datastream.functions import (
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessWindowFunction,
)
from airflow_pipelines.datastream.state import MapStateDescriptor
from airflow_pipelines.datastream.window import TumblingEventTimeWindows
from airflow_pipelines.streams.clock import ManualClock
from airflow_pipelines.streams.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.snapshots import Snapshot
from airflow_pipelines.streams.sources import Polled, Source, SourceReader
from airflow_pipelines.streams.watermarks import Combination
from tests.datastream.programs import environment, first

IDLE_MS = 300
STRATEGY = (
    WatermarkStrategy.for_monotonous_timestamps()
    .with_timestamp_assigner(lambda value, _: value[1])
    .with_idleness(Duration.of_millis(IDLE_MS))
)


class _Scripted(Source):
    """Splits whose elements and ends the test adds while the program runs."""

    def __init__(self, splits: int = 1, is_bounded: bool = False) -> None:
        self.waiting: list[list[Any]] = [[] for _ in range(splits)]
        self.ends = [False] * splits
        self._is_bounded = is_bounded

    @property
    def is_bounded(self) -> bool:
        return self._is_bounded

    def splits(self, parallelism: int) -> Any:
        return range(len(self.waiting))

    def open(self, split: Any, position: Any) -> SourceReader:
        return _ScriptedReader(self, split)


class _ScriptedReader(SourceReader):
    def __init__(self, source: _Scripted, split: int) -> None:
        self.source, self.split = source, split

    def poll(self, limit: int) -> Polled:
        values, self.source.waiting[self.split] = self.source.waiting[self.split], []
        return Polled(values, finished=self.source.ends[self.split])

    def position(self) -> None:
        return None


class _Window(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        yield key, context.window().start, len(list(elements))


class _Timer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value[1])
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp - timestamp % 2000, 1


class _Both(KeyedCoProcessFunction):
    process_element1 = process_element2 = _Timer.process_element
    on_timer = _Timer.on_timer


class _Broadcast(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value[1])
        return ()

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        return ()

    on_timer = _Timer.on_timer


def _windows(stream: DataStream) -> DataStream:
    return stream.key_by(first).window(TumblingEventTimeWindows.of(2000)).process(_Window())


JOINS: dict[str, Callable[[DataStream, DataStream], DataStream]] = {
    "union": lambda one, other: _windows(one.union(other)),
    "connect": lambda one, other: one.key_by(first).connect(other.key_by(first)).process(_Both()),
    "broadcast": lambda one, other: one.key_by(first).connect(other.broadcast(MapStateDescriptor("rules"))).process(_Broadcast()),
}


class _Run:
    """A program over some inputs, step by step."""

    def __init__(self, define: Callable[..., DataStream], sources: list[_Scripted], at_source: bool, parallelism: int) -> None:
        self.sources = sources
        self._define, self._at_source = define, at_source
        self.sink, self.clock = CollectSink(), ManualClock(0)
        self.found: list[Any] = []
        self.runner = LocalRunner(self._plan(parallelism), clock=self.clock)

    def _plan(self, parallelism: int) -> Any:
        env = environment(parallelism)
        streams = []
        for number, source in enumerate(self.sources):
            stream = env.from_source(source, STRATEGY if self._at_source else WatermarkStrategy.no_watermarks(), "in")
            stream = stream.uid(f"in{number}")
            streams.append(stream if self._at_source else stream.assign_timestamps_and_watermarks(STRATEGY).uid(f"time{number}"))
        node = self._define(*streams).uid("out").sink_to(self.sink).uid("sink")._node
        plan = plan_of(env.graph, [node.id], Defaults(parallelism))
        env._take_sinks()
        return plan

    def step(self, advance: int = 100) -> list[Any]:
        self.clock.advance(advance)
        self.runner.step()
        self.found += self.sink.values
        found = list(self.sink.values)
        self.sink.values.clear()
        return found

    def restart(self, parallelism: int) -> None:
        kept = self.runner.snapshot().to_bytes()
        self.runner.close()
        self.runner = LocalRunner(self._plan(parallelism), clock=self.clock, snapshot=Snapshot.from_bytes(kept))


at_sources = pytest.mark.parametrize("at_source", [True, False], ids=["at source", "after it"])
parallelisms = pytest.mark.parametrize("parallelism", [1, 2])


@at_sources
@parallelisms
@pytest.mark.parametrize("is_bounded", [True, False], ids=["bounded", "unbounded"])
def test_an_input_that_is_idle_when_it_ends_comes_to_the_end_of_time(at_source: bool, parallelism: int, is_bounded: bool) -> None:
    source = _Scripted(is_bounded=is_bounded)
    run = _Run(_windows, [source], at_source, parallelism)
    source.waiting[0] = [("a", 0), ("a", 1000), ("b", 5000)]
    for _ in range(10):
        run.step()
    assert run.found == ([] if is_bounded else [("a", 0, 2)])
    source.ends[0] = True
    run.step()
    assert (sorted(run.found), run.runner.has_ended) == ([("a", 0, 2), ("b", 4000, 1)], True)
    run.runner.close()


@at_sources
@parallelisms
@pytest.mark.parametrize("restarted", [None, 1, 2, 3])
@pytest.mark.parametrize("order", permutations(("first", "idle", "second")))
@pytest.mark.parametrize("how", JOINS)
def test_two_inputs_of_which_one_is_idle_and_the_other_ends(
    how: str, order: tuple[str, ...], at_source: bool, parallelism: int, restarted: int | None
) -> None:
    """The first one ends, the second one ends, and both are without elements for a while, in every order."""
    one, other = _Scripted(), _Scripted()
    run = _Run(JOINS[how], [one, other], at_source, parallelism)
    one.waiting[0], other.waiting[0] = [("a", 1000)], [("b", 5000)]
    run.step()
    for what in order:
        if what == "idle":
            run.step(2 * IDLE_MS)
            run.step(2 * IDLE_MS)
        else:
            (one if what == "first" else other).ends[0] = True
        run.step()
        if restarted is not None:
            run.restart(restarted)
        run.step()
    run.step()
    assert run.runner.has_ended
    assert sorted(run.found) == ([("a", 0, 1)] if how == "broadcast" else [("a", 0, 1), ("b", 4000, 1)])
    run.runner.close()


# Behind the source, the splits of one task are one input.
@pytest.mark.parametrize(("splits", "at_source"), [(True, True), (False, True), (False, False)])
@parallelisms
@pytest.mark.parametrize("restarted", [None, 1, 2])
def test_what_an_idle_input_gives_when_it_wakes_up_is_not_late_because_the_others_have_ended(
    at_source: bool, parallelism: int, splits: bool, restarted: int | None
) -> None:
    sources = [_Scripted(2)] if splits else [_Scripted(), _Scripted()]
    inputs = [(sources[0], 0), (sources[0], 1) if splits else (sources[1], 0)]
    run = _Run(_windows if splits else JOINS["union"], sources, at_source, parallelism)
    for (source, split), element in zip(inputs, (("a", 1000), ("b", 1000)), strict=True):
        source.waiting[split] = [element]
    run.step()
    run.step(2 * IDLE_MS)
    inputs[0][0].waiting[inputs[0][1]] = [("a", 1800)]  # so that it is not idle when it ends
    inputs[0][0].ends[inputs[0][1]] = True
    run.step()
    run.step(2 * IDLE_MS)
    if restarted is not None:
        run.restart(restarted)
    assert run.step() == []
    inputs[1][0].waiting[inputs[1][1]] = [("b", 1500), ("b", 9000)]
    run.step()
    run.step(200)
    assert sorted(run.found) == [("a", 0, 2), ("b", 0, 2)]
    inputs[1][0].ends[inputs[1][1]] = True
    run.step()
    assert sorted(run.found) == [("a", 0, 2), ("b", 0, 2), ("b", 8000, 1)]
    run.runner.close()


def test_who_waits_for_an_idle_input_when_all_others_have_ended_is_told(caplog: pytest.LogCaptureFixture) -> None:
    sources = [_Scripted(), _Scripted()]
    run = _Run(JOINS["union"], sources, at_source=True, parallelism=1)
    sources[0].waiting[0], sources[0].ends[0] = [("a", 1000)], True
    for _ in range(50):
        run.step(1000)
    warnings = [record.getMessage() for record in caplog.records if "stood still" in record.getMessage()]
    assert len(warnings) == 1
    assert "it waits for task 1 of 'Source: in', idle, while all other inputs have ended" in warnings[0]
    run.runner.close()


def test_at_the_end_of_time_no_input_is_idle() -> None:
    combination = Combination(["a", "b", "c"])
    combination.set_idle("a", idle=True)
    combination.set_idle("b", idle=True)
    assert not combination.update("a", MAX_TIMESTAMP)
    assert not combination.all_idle
    assert combination.update("c", 10)
    assert (combination.watermark, combination.held_back_by()) == (10, ["c"])
    assert not combination.update("c", MAX_TIMESTAMP)
    assert combination.all_idle
    assert combination.held_back_by() == ["b"]
    assert combination.is_held_back
    restored = Combination(["a", "b", "c"])
    restored.restore(combination.snapshot())
    assert restored.all_idle
    assert restored.update("b", MAX_TIMESTAMP)
    assert (restored.watermark, restored.all_idle, restored.held_back_by()) == (MAX_TIMESTAMP, False, [])
    assert Combination([]).all_idle
    assert Combination([]).watermark == MIN_TIMESTAMP
