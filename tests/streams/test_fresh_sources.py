"""Sources that read something else than a snapshot knows begin anew, and event time behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.datastream.collecting import CollectSink
from airflow_pipelines.datastream.common import Duration, WatermarkStrategy
from airflow_pipelines.datastream.connectors.file_formats import StreamFormat
from airflow_pipelines.datastream.connectors.file_source import FileSource
from airflow_pipelines.datastream.connectors.number_sequence import NumberSequenceSource
from airflow_pipelines.datastream.functions import KeyedProcessFunction
from airflow_pipelines.datastream.state import ValueStateDescriptor
from airflow_pipelines.streams.clock import ManualClock
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.snapshots import Snapshot
from tests.datastream.programs import environment

STRATEGY = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: int(value))


class _Counted(KeyedProcessFunction):
    """Says of each element when event time has come there, with the number of elements before it."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(int(value))
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp, self.count.value(), ctx.timer_service().current_watermark() >= timestamp


def _files(path: Path, watched: bool = False) -> FileSource:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path))
    return (builder.monitor_continuously(Duration.of_millis(1)) if watched else builder).build()


class _Run:
    def __init__(self, source: Any, snapshot: Snapshot | None, at_source: bool, parallelism: int = 1, more: Any = None) -> None:
        env = environment(parallelism)
        self.sink, self.warnings = CollectSink(), list[str]()
        streams = [
            env.from_source(each, STRATEGY if at_source else WatermarkStrategy.no_watermarks(), name).uid(name)
            for each, name in ((source, "in"), (more, "more"))
            if each is not None
        ]
        if not at_source:
            timed = [stream.assign_timestamps_and_watermarks(STRATEGY) for stream in streams]
            streams = [stream.uid(f"time{number}") for number, stream in enumerate(timed)]
        stream = streams[0].union(*streams[1:])
        node = stream.key_by(lambda _: 0).process(_Counted()).uid("count").sink_to(self.sink).uid("out")._node
        self.clock = ManualClock(0)
        plan = plan_of(env.graph, [node.id], Defaults(parallelism))
        self.runner = LocalRunner(plan, clock=self.clock, snapshot=snapshot, warn=self.warnings.append)
        env._take_sinks()

    def steps(self, number: int = 4) -> list[Any]:
        for _ in range(number):
            self.clock.advance(200)
            self.runner.step()
        found = list(self.sink.values)
        self.sink.values.clear()
        return found

    def stop(self) -> Snapshot:
        kept = self.runner.snapshot().to_bytes()
        self.runner.close()
        return Snapshot.from_bytes(kept)


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("at_source", [True, False])
def test_a_file_in_the_place_of_another_is_read_with_event_time_of_its_own(
    tmp_path: Path, at_source: bool, parallelism: int
) -> None:
    (tmp_path / "a").write_text("500\n600\n")
    (tmp_path / "b").write_text("100\n200\n")
    first = _Run(_files(tmp_path / "a"), None, at_source, parallelism)
    assert [timestamp for timestamp, *_ in first.steps()] == [500, 600]
    kept = first.stop()
    again = _Run(_files(tmp_path / "a"), kept, at_source, parallelism)
    assert (again.steps(), again.warnings) == ([], [])
    again.stop()
    other = _Run(_files(tmp_path / "b"), kept, at_source, parallelism)
    assert other.steps() == [(100, 4, True), (200, 4, True)]  # and state is kept
    assert other.warnings == [
        f"The source 'Source: in' reads {tmp_path / 'b'}, and its position in the snapshot is one in {tmp_path / 'a'}:"
        " it begins anew."
    ]
    assert other.runner.has_ended
    other.runner.close()


def test_a_folder_that_is_watched_besides_changes_nothing_for_the_other(tmp_path: Path) -> None:
    for name, text in (("a/1", "100\n"), ("b/1", "50\n")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    both = FileSource(StreamFormat.text_line_format(), (str(tmp_path / "a"), str(tmp_path / "b")), 0.001)
    first = _Run(_files(tmp_path / "a", watched=True), None, at_source=True)
    first.steps()
    run = _Run(both, first.stop(), at_source=True)
    run.steps()
    assert run.runner.elements_read == 1
    assert run.warnings == []
    run.runner.close()


@pytest.mark.parametrize("ends", [True, False])
def test_event_time_goes_on_where_another_source_does_unless_it_had_come_to_its_end(tmp_path: Path, ends: bool) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1").write_text("500\n")
    (tmp_path / "b").write_text("100\n")
    first = _Run(_files(tmp_path / "a", watched=not ends), None, at_source=True)
    first.steps()
    run = _Run(_files(tmp_path / "a", watched=not ends), first.stop(), at_source=True, more=_files(tmp_path / "b"))
    found = run.steps(8)
    if ends:
        assert found == [(100, 2, True)]
    else:
        # Nothing is behind event time as it was: a timer there fires when it moves next.
        assert found == []
        assert run.runner.event_time() == 499
    run.runner.close()


def test_a_sequence_of_other_numbers_is_another_one() -> None:
    first = _Run(NumberSequenceSource(1, 3), None, at_source=True)
    assert len(first.steps()) == 3
    run = _Run(NumberSequenceSource(1, 5), first.stop(), at_source=True)
    assert [timestamp for timestamp, *_ in run.steps()] == [1, 2, 3, 4, 5]
    run.runner.close()
