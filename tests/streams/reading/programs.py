"""Programs whose sources are read, and a reader of them."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_pipelines.datastream import StreamExecutionEnvironment
from airflow_pipelines.streams.function_source import SourceContext, SourceFunction
from airflow_pipelines.streams.reading.client import ReadingProcess, SourceClient
from airflow_pipelines.streams.reading.messages import Given
from airflow_pipelines.streams.sources import Polled, Source, SourceReader
from airflow_pipelines.streams.worker.bound import bind
from airflow_pipelines.streams.worker.messages import FeedKind

ROOT = str(Path(__file__).parents[3])
LIMIT = 30.0


def program(define: Callable[[StreamExecutionEnvironment], None]) -> bytes:
    """A program as its processes get it.

    :param define: makes it
    """
    env = StreamExecutionEnvironment.get_execution_environment()
    define(env)
    plan = env._plan(env._take_sinks())
    return bind(plan, env._task_settings(plan), ROOT).to_bytes()


@dataclass
class Received:
    """All that was received of a source.

    :param number_of_splits: told first
    :param by_split: values of each split
    :param timestamps: those of each split
    :param ended: the splits that have ended
    :param position: the newest
    :param has_ended: whether the source has ended
    """

    number_of_splits: int | None = None
    by_split: dict[int, list[Any]] = field(default_factory=dict)
    timestamps: dict[int, list[Any]] = field(default_factory=dict)
    ended: list[int] = field(default_factory=list)
    position: bytes | None = None
    has_ended: bool = False
    sizes: list[int] = field(default_factory=list)

    def take(self, given: Given) -> None:
        """Add a reply."""
        for feed in given.feeds:
            assert not self.has_ended
            if feed.kind is FeedKind.SPLITS:
                assert self.number_of_splits is None
                assert not self.by_split
                self.number_of_splits = feed.records
                assert feed.split == -1
            elif feed.kind is FeedKind.ENDED:
                assert feed.records == 0
                self.ended.append(feed.split)
            else:
                assert feed.split not in self.ended
                values, timestamps = pickle.loads(feed.payload)
                assert len(values) == feed.records > 0
                assert timestamps is None or len(timestamps) == len(values)
                self.by_split.setdefault(feed.split, []).extend(values)
                self.timestamps.setdefault(feed.split, []).extend(timestamps or [None] * len(values))
                self.sizes.append(feed.records)
        self.position = given.position
        self.has_ended = given.has_ended

    @property
    def number(self) -> int:
        """How many elements."""
        return sum(map(len, self.by_split.values()))

    @property
    def all(self) -> list[Any]:
        """All elements, split by split."""
        return [value for split in sorted(self.by_split) for value in self.by_split[split]]


def receive(source: SourceClient, until: Callable[[Received], bool], most: int = 100_000, into: Received | None = None) -> Received:
    """Read until something is the case, or the source has ended.

    :param source: an open one
    :param until: what to wait for
    :param most: how many elements to ask for at a time
    :param into: what was received before
    """
    received = Received() if into is None else into
    end = time.monotonic() + LIMIT
    while not received.has_ended and not until(received):
        assert time.monotonic() < end, f"{LIMIT} s were not enough: {received.number} elements"
        given = source.read(most, 0.5)
        if given is not None:
            received.take(given)
    return received


def receive_all(process: ReadingProcess, uid: str, position: bytes | None = None, most: int = 100_000) -> Received:
    """All of a source that ends."""
    source = process.source(uid)
    source.open(position)
    return receive(source, lambda _: False, most)


class Counting(SourceFunction):
    """Counts, and can go on."""

    is_bounded = True

    def __init__(self, end: int, pause: float = 0.0) -> None:
        self.end = end
        self.pause = pause
        self.number = 0

    def run(self, ctx: SourceContext) -> Iterator[Any]:
        while self.number < self.end:
            self.number += 1
            yield ctx.with_timestamp(self.number, self.number * 1000)
            time.sleep(self.pause) if self.pause else None

    def snapshot_state(self) -> int:
        return self.number

    def restore_state(self, state: int) -> None:
        self.number = state


class Waiting(SourceFunction):
    """Gives what it has, and then waits for ever."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values

    def run(self, ctx: SourceContext) -> Iterator[Any]:
        yield from self.values
        time.sleep(3600)


class Touching(SourceFunction):
    """Says in files what is asked of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = 0

    def run(self, ctx: SourceContext) -> Iterator[Any]:
        while not ctx.is_cancelled:
            self.number += 1
            (self.folder / "given").write_text(str(self.number))
            yield self.number
            yield None
        (self.folder / "left").touch()

    def snapshot_state(self) -> list[int]:
        return [self.number]

    def notify_checkpoint_complete(self, state: Any) -> None:
        (self.folder / "committed").write_text(str(state))

    def cancel(self) -> None:
        (self.folder / "cancelled").touch()


class Failing(SourceFunction):
    """Raises after some elements."""

    def __init__(self, after: int, error: str = "no more of this") -> None:
        self.after = after
        self.error = error

    def run(self, ctx: SourceContext) -> Iterator[Any]:
        yield from range(self.after)
        if self.error == "exit":
            raise SystemExit(3)
        raise ValueError(self.error)


@dataclass(frozen=True)
class Lists(Source):
    """One split for each list; the position is a list that is changed in place."""

    lists: tuple[tuple[Any, ...], ...]
    fails_at: str = ""

    @property
    def is_bounded(self) -> bool:
        return True

    def splits(self, parallelism: int) -> Sequence[Any]:
        if self.fails_at == "splits":
            raise RuntimeError("cannot look")
        return [list(each) for each in self.lists]

    def open(self, split: Any, position: Any | None) -> SourceReader:
        if self.fails_at == "open":
            raise RuntimeError("cannot open")
        return _ListReader(split, position, self.fails_at)


class _ListReader(SourceReader):
    def __init__(self, values: list[Any], position: list[int] | None, fails_at: str) -> None:
        self.values = values
        self.at = position or [0]
        self.fails_at = fails_at

    def poll(self, limit: int) -> Polled:
        if self.fails_at == "poll":
            raise RuntimeError("cannot read")
        start = self.at[0]
        self.at[0] = min(start + min(limit, 3), len(self.values))
        return Polled(self.values[start : self.at[0]], finished=self.at[0] == len(self.values))

    def position(self) -> Any:
        if self.fails_at == "position":
            raise RuntimeError("cannot say")
        return self.at if self.fails_at != "lock" else Path(__file__).open()

    def commit(self, position: Any) -> None:
        if self.fails_at == "commit":
            raise RuntimeError("cannot commit")
