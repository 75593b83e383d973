"""What the thread that reads a source does: between its elements, with positions that cost much, and when it is over."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_pipelines.streams.function_source import FunctionSource, SourceContext, SourceFunction
from airflow_pipelines.streams.reading.messages import Given
from airflow_pipelines.streams.reading.outbox import Outbox
from airflow_pipelines.streams.reading.source_delivery import SourceDelivery
from airflow_pipelines.streams.reading.source_reading import NamedSource, SourceReading
from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.sources import Source
from airflow_pipelines.streams.worker.messages import FeedKind
from tests.streams.reading.programs import Counting, Lists

_LIMIT = 30.0


class _Read:
    """A source that is read in a thread of this process."""

    def __init__(self, source: Source, position: bytes | None = None, **told: Any) -> None:
        named = NamedSource("uid", "the source", source, 1, **told)
        self.outbox = Outbox()
        self.reading = SourceReading(named, position, self.outbox)
        self.giving = SourceDelivery(named, self.outbox, is_new=position is None)
        self.thread = threading.Thread(target=self.reading.run, daemon=True)
        self.thread.start()

    def give(self, most: int = 100_000) -> Given:
        given = self.giving.give(most)
        assert given is not None
        return given

    def close(self) -> None:
        self.outbox.close()
        self.reading.cancel()
        self.thread.join(_LIMIT)
        assert not self.thread.is_alive()


def _values(given: Given) -> list[Any]:
    return [value for feed in given.feeds if feed.payload for value in pickle.loads(feed.payload)[0]]


def test_no_more_is_given_than_was_asked_for() -> None:
    read = _Read(FunctionSource(Counting(1000)))
    found: list[Any] = []
    while len(found) < 100:
        given = read.give(7)
        assert given.records <= 7
        found += _values(given)
    assert found == list(range(1, len(found) + 1))
    read.close()


class _Told(SourceFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.told = (
            runtime_context.get_job_parameter("factor"),
            runtime_context.get_task_name_with_subtasks(),
            runtime_context.get_max_number_of_parallel_subtasks(),
        )

    def run(self, ctx: SourceContext) -> Iterator[Any]:
        yield self.told


def test_a_function_is_told_its_name_and_what_the_program_gives_to_its_functions() -> None:
    read = _Read(FunctionSource(_Told()), max_parallelism=16, job_parameters={"factor": "3"})
    values: list[Any] = []
    while not values:  # the splits may come first
        values += _values(read.give())
    assert values == [("3", "the source (1/1)", 16)]
    read.close()


def test_each_position_is_that_after_its_elements() -> None:
    read = _Read(Lists(((1, 2, 3, 4, 5), (6, 7, 8, 9))))
    while True:
        given = read.give(3)
        again = _Read(Lists(((1, 2, 3, 4, 5), (6, 7, 8, 9))), given.position)
        rest: list[Any] = []
        last = again.give()
        rest += _values(last)
        while not last.has_ended:
            last = again.give()
            rest += _values(last)
        again.close()
        _SEEN.extend(_values(given))
        assert sorted(_SEEN + rest) == list(range(1, 10))
        if given.has_ended:
            break
    _SEEN.clear()
    read.close()


_SEEN: list[Any] = []


class _Costly(SourceFunction):
    """Its position takes a while to find out, and it waits after a while."""

    def __init__(self) -> None:
        self.asked = 0
        self.waits = threading.Event()

    def __deepcopy__(self, memo: object) -> _Costly:
        return self

    def __reduce__(self) -> Any:
        return _costly, (id(self),)

    def run(self, ctx: object) -> Iterator[Any]:
        yield from range(3000)
        yield None
        self.waits.wait(_LIMIT)

    def snapshot_state(self) -> Any:
        self.asked += 1
        time.sleep(0.001)
        return {"n": self.asked}

    def cancel(self) -> None:
        self.waits.set()


_ALL: dict[int, _Costly] = {}


def _costly(number: int) -> _Costly:
    return _ALL[number]


def test_a_position_that_costs_much_is_not_found_out_for_each_element() -> None:
    function = _Costly()
    _ALL[id(function)] = function
    read = _Read(FunctionSource(function))
    found: list[Any] = []
    end = time.monotonic() + _LIMIT
    while len(found) < 3000:
        assert time.monotonic() < end
        found += _values(read.give())
    assert found == list(range(3000))
    assert function.asked < 1500
    read.close()
    _ALL.clear()


def test_a_commit_comes_between_elements_and_after_the_end() -> None:
    class Noting(Counting):
        heard: list[Any] = []

        def notify_checkpoint_complete(self, state: Any) -> None:
            self.heard.append(state)

    read = _Read(FunctionSource(Noting(10)))
    given = read.give(4)
    while not given.records:
        given = read.give(4)
    read.outbox.commit(given.position)
    while not given.has_ended:
        given = read.give()
    read.outbox.commit(given.position)
    end = time.monotonic() + _LIMIT
    while 10 not in Noting.heard:
        assert time.monotonic() < end
        time.sleep(0.01)
    read.close()


def test_who_waits_for_elements_is_let_go_at_the_close() -> None:
    read = _Read(FunctionSource(_Silent()))
    assert read.give().feeds[0].kind is FeedKind.SPLITS
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(read.giving.give(1)))
    waiting.start()
    read.close()
    waiting.join(_LIMIT)
    assert found == [None]


class _Silent(SourceFunction):
    def run(self, ctx: object) -> Iterator[Any]:
        while True:
            yield None


def test_an_error_after_the_end_is_shown_though_nobody_may_read_any_more(capsys: pytest.CaptureFixture[str]) -> None:
    read = _Read(Lists(((1,),), "commit"))
    given = read.give()
    while not given.has_ended:
        given = read.give()
    read.outbox.commit(given.position)
    # It has ended, which it says again until it has failed.
    end = time.monotonic() + _LIMIT

    def give_until_it_fails() -> None:
        while time.monotonic() < end:
            assert read.give().has_ended

    with pytest.raises(RuntimeError, match="cannot commit") as raised:
        give_until_it_fails()
    assert raised.value.__notes__ == ["in operator 'the source', committing the position of split 0"]
    assert "cannot commit" in capsys.readouterr().err
    read.close()
