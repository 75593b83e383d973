"""Splits that appear while a source is read: in one process, and in the process that reads for a pipeline."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from airflow_pipelines.datastream.collecting import CollectSink
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.known_splits import KnownSplits
from airflow_pipelines.streams.local import LocalRunner, Snapshot
from airflow_pipelines.streams.reading.messages import Given
from airflow_pipelines.streams.reading.outbox import Outbox
from airflow_pipelines.streams.reading.source_delivery import SourceDelivery
from airflow_pipelines.streams.reading.source_reading import NamedSource, SourceReading
from airflow_pipelines.streams.sources import Polled, Source, SourceReader
from airflow_pipelines.streams.worker.messages import FeedKind
from tests.datastream.programs import environment


@dataclass
class _Growing(Source):
    """One split for each list of its table, which grows. Looking for them never gives the same order twice."""

    table: dict[str, list[int]] = field(default_factory=dict)
    looks: int = 0
    is_bounded = False
    look_interval = 0.0

    def splits(self, parallelism: int) -> Sequence[Any]:
        self.looks += 1
        return sorted(self.table, reverse=self.looks % 2 == 0)

    def more_splits(self, known: Sequence[Any]) -> Sequence[Any]:
        return sorted(set(self.table) - set(known))

    def open(self, split: Any, position: Any | None) -> SourceReader:
        return _Reader(self.table[split], position or 0)


class _Reader(SourceReader):
    def __init__(self, values: list[int], at: int) -> None:
        self.values, self.at = values, at

    def poll(self, limit: int) -> Polled:
        values = self.values[self.at : self.at + limit]
        self.at += len(values)
        return Polled(values)

    def position(self) -> int:
        return self.at


def _run(source: _Growing, sink: CollectSink, parallelism: int, snapshot: Snapshot | None = None) -> LocalRunner:
    env = environment(parallelism)
    node = env.from_source(source, None, "growing").uid("growing").sink_to(sink)._node
    env._take_sinks()
    return LocalRunner(plan_of(env.graph, [node.id], Defaults(parallelism)), snapshot=snapshot)


def _taken(sink: CollectSink) -> list[Any]:
    taken = list(sink.values)
    sink.values.clear()
    return taken


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_every_task_of_a_program_reads_the_splits_of_its_number_also_those_that_appear(parallelism: int) -> None:
    source, sink = _Growing({"a": [1], "b": [2]}), CollectSink()
    run = _run(source, sink, parallelism)
    run.step()
    source.table["0"] = [3]
    source.table["c"] = [4]
    run.step()
    source.table["a"].append(5)
    run.step()
    kept = run.snapshot()
    run.abort()
    assert sorted(_taken(sink)) == [1, 2, 3, 4, 5]
    source.table["d"] = [6]
    source.table["c"].append(7)
    again = _run(source, sink, 2, kept)
    again.step()
    assert sorted(_taken(sink)) == [6, 7]
    assert not again.has_ended
    again.drain()
    assert again.has_ended
    again.close()


def test_a_source_that_finds_none_goes_on_looking() -> None:
    source, sink = _Growing(), CollectSink()
    run = _run(source, sink, 2)
    run.step()
    assert not run.has_ended
    source.table["a"] = [1]
    run.step()
    run.abort()
    assert _taken(sink) == [1]


def test_splits_are_looked_for_no_more_often_than_the_source_says() -> None:
    source = _Growing({"a": []})
    source.look_interval = 3600.0
    known = KnownSplits(source, 1)
    assert known.first() == ["a"]
    source.table["b"] = []
    assert known.look() == ["a", "b"]
    source.table["c"] = []
    assert known.look() == ["a", "b"]


class _Read:
    """A source that is read in a thread of this process, as in the process that reads for a pipeline."""

    def __init__(self, source: Source, position: bytes | None = None) -> None:
        named = NamedSource("uid", "growing", source, 1)
        self.outbox = Outbox()
        self.reading = SourceReading(named, position, self.outbox)
        self.giving = SourceDelivery(named, self.outbox, is_new=position is None)
        self.thread = threading.Thread(target=self.reading.run, daemon=True)
        self.thread.start()

    def until(self, number: int) -> Iterator[tuple[FeedKind, int, Any]]:
        """What is given, until there were so many elements."""
        while number > 0:
            self.last: Given = self.giving.give(100)  # type: ignore[assignment]
            number -= self.last.records
            for feed in self.last.feeds:
                yield feed.kind, feed.split, pickle.loads(feed.payload)[0] if feed.payload else feed.records

    def close(self) -> None:
        self.outbox.close()
        self.thread.join(30)
        assert not self.thread.is_alive()


def test_a_pipeline_is_told_of_splits_before_their_elements_and_goes_on_with_them() -> None:
    source = _Growing({"a": [1]})
    read = _Read(source)
    assert list(read.until(1)) == [(FeedKind.SPLITS, -1, 1), (FeedKind.ELEMENTS, 0, [1])]
    source.table["0"] = [2, 3]
    assert list(read.until(2)) == [(FeedKind.SPLITS, -1, 2), (FeedKind.ELEMENTS, 1, [2, 3])]
    position = read.last.position
    read.close()
    source.table["0"].append(4)
    source.table["b"] = [5]
    again = _Read(source, position)
    found = list(again.until(2))
    again.close()
    assert (FeedKind.ELEMENTS, 1, [4]) in found
    assert found.index((FeedKind.SPLITS, -1, 3)) < found.index((FeedKind.ELEMENTS, 2, [5]))
    assert len(found) == 3


def test_a_pipeline_reads_on_when_a_source_has_no_split_yet() -> None:
    source = _Growing()
    read = _Read(source)
    first = read.giving.give(100)
    assert first is not None
    assert not first.has_ended
    source.table["a"] = [1]
    assert list(read.until(1)) == [(FeedKind.SPLITS, -1, 1), (FeedKind.ELEMENTS, 0, [1])]
    read.close()
