"""Programs for tests of the ends of sources: one for each use of event time, run as a script and as in a pipeline."""

from __future__ import annotations

import ast
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from airflow_pipelines.datastream import DataStream, OutputTag, WatermarkStrategy
from airflow_pipelines.datastream.collecting import CollectSink
from airflow_pipelines.datastream.functions import KeyedProcessFunction, ProcessWindowFunction
from airflow_pipelines.datastream.window import TumblingEventTimeWindows
from airflow_pipelines.streams.clock import ManualClock
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.reading.outbox import Outbox
from airflow_pipelines.streams.reading.server import sources_of
from airflow_pipelines.streams.reading.source_delivery import SourceDelivery
from airflow_pipelines.streams.reading.source_reading import NamedSource, SourceReading
from airflow_pipelines.streams.sources import Source
from airflow_pipelines.streams.worker.messages import SourceFeed
from tests.datastream.programs import EachElement, environment, first
from tests.streams.worker.programs import begin, program, rows

LINES = ("a,0", "a,1000", "b,5000", "a,500", "c,9000")
"""Keys and times. A watermark follows each element, so that one element is late."""
_LATE = OutputTag("late")
_PATIENCE_S = 30.0


class _Timer(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value[1] + 100)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield ctx.get_current_key(), timestamp


class _Window(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, context.window().start


def _timers(stream: DataStream) -> DataStream:
    return stream.key_by(first).process(_Timer())


def _windowed(stream: DataStream) -> Any:
    return stream.key_by(first).window(TumblingEventTimeWindows.of(2000)).side_output_late_data(_LATE).process(_Window())


USES: dict[str, tuple[Callable[[DataStream], DataStream], list[Any], list[Any]]] = {
    "timers": (_timers, [("a", 100), ("a", 600), ("a", 1100), ("b", 5100)], [("c", 9100)]),
    "windows": (_windowed, [("a", 0), ("b", 4000)], [("c", 8000)]),
    "late": (lambda stream: _timers(_windowed(stream).get_side_output(_LATE)), [("a", 600)], []),
}
"""Uses of event time: the program, its results without an end of the input, and those that come at the end."""


def line_of(value: Any) -> str:
    """The line in an element: itself, or a column of a row."""
    return value if isinstance(value, str) else value["line"]


def parsed(value: Any) -> tuple[str, int]:
    key, timestamp = line_of(value).split(",")
    return key, int(timestamp)


def timed(source: Source, at_source: bool, parallelism: int, strategy: WatermarkStrategy | None = None) -> DataStream:
    """The lines of a source with their event time."""
    strategy = strategy or WatermarkStrategy.for_generator(EachElement)
    strategy = strategy.with_timestamp_assigner(lambda value, _: parsed(value)[1])
    env = environment(parallelism)
    if at_source:
        return env.from_source(source, strategy, "in").uid("in").map(parsed)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "in").uid("in")
    return stream.assign_timestamps_and_watermarks(strategy).map(parsed)


def run_as_script(stream: DataStream, ends: bool, number: int = len(LINES)) -> list[Any]:
    """The results of a program in one process, in any order."""
    env, sink, clock = stream.get_execution_environment(), CollectSink(), ManualClock(0)
    node = stream.sink_to(sink)._node
    runner = LocalRunner(plan_of(env.graph, [node.id], Defaults(env.get_parallelism())), clock=clock)
    env._take_sinks()
    _until(lambda: runner.step() >= 0 and (runner.has_ended if ends else runner.elements_read >= number))
    for _ in range(5):
        clock.advance(1000)
        runner.step()
    runner.close()
    return sorted(sink.values)


def run_as_pipeline(stream: DataStream, ends: bool, number: int = len(LINES)) -> list[Any]:
    """The results of a program whose sources are read elsewhere, in any order."""
    bound = program(stream, parallelism=stream.get_execution_environment().get_parallelism())
    run, _ = begin(bound, now_ms=0)
    found, stepped = [], None
    for source in sources_of(bound).values():
        for feeds in _read(source, ends, number):
            stepped = run.step(0, feeds)
            found += rows(stepped)
    for now in range(1000, 6000, 1000):
        stepped = run.step(now, [])
        found += rows(stepped)
    assert stepped is not None
    assert stepped.has_ended == ends
    run.close()
    return sorted(ast.literal_eval(text) for (text,) in found)


def _read(source: NamedSource, ends: bool, number: int) -> Sequence[list[SourceFeed]]:
    outbox = Outbox()
    reading = SourceReading(source, None, outbox)
    thread = threading.Thread(target=reading.run, daemon=True)
    thread.start()
    giving = SourceDelivery(source, outbox, is_new=True)
    given: list[list[SourceFeed]] = []
    try:
        while True:
            reply = giving.give(1000)
            assert reply is not None
            given.append(list(reply.feeds))
            if reply.has_ended:
                assert ends
                return given
            if not ends and sum(feed.records for feeds in given for feed in feeds if feed.payload) >= number:
                return given
    finally:
        outbox.close()
        reading.cancel()
        thread.join(_PATIENCE_S)


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"{_PATIENCE_S} s were not enough"
        time.sleep(0.001)


RUNS = {"script": run_as_script, "pipeline": run_as_pipeline}
