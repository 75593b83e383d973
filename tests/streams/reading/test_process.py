"""The process that reads sources: every kind of source, from any position, one beside the other, and what goes wrong."""

from __future__ import annotations

import os
import pickle
import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.datastream import Duration, StreamExecutionEnvironment, Types, WatermarkStrategy
from airflow_pipelines.datastream.connectors import (
    FileSource,
    JdbcConnectionOptions,
    JdbcSource,
    NumberSequenceSource,
    StreamFormat,
)
from airflow_pipelines.streams.processes import ProcessEndedError, ProcessSettings
from airflow_pipelines.streams.reading.client import ReadingProcess
from airflow_pipelines.streams.worker.client import ProgramFailedError
from airflow_pipelines.streams.worker.messages import FeedKind
from tests.streams.reading.conftest import Start
from tests.streams.reading.programs import (
    LIMIT,
    Counting,
    Failing,
    Lists,
    Received,
    Touching,
    Waiting,
    receive,
    receive_all,
)

pytestmark = pytest.mark.core

_NONE = WatermarkStrategy.no_watermarks()


def _until_file(path: Path, text: str | None = None) -> None:
    end = time.monotonic() + LIMIT
    while not path.exists() or (text is not None and path.read_text() != text):
        assert time.monotonic() < end, f"waited {LIMIT} s for {path.name}"
        time.sleep(0.01)


def _numbers(env: StreamExecutionEnvironment, end: int = 20_000, parallelism: int = 3) -> None:
    env.from_source(NumberSequenceSource(1, end), _NONE, "numbers").set_parallelism(parallelism).uid("n").print()


def test_a_collection(start: Start) -> None:
    values = [1, "two", None, {"three": [3.0]}, (4,)] * 3000
    process = start(lambda env: env.from_collection(values).uid("c").print())
    received = receive_all(process, "c")
    assert received.number_of_splits == 1
    assert received.by_split == {0: values}
    assert received.ended == [0]
    assert received.has_ended
    assert max(received.sizes) <= 4000


def test_an_empty_collection_tells_its_split_and_its_end(start: Start) -> None:
    process = start(lambda env: env.from_collection([]).uid("c").print())
    received = receive_all(process, "c")
    assert (received.number_of_splits, received.by_split, received.ended) == (1, {}, [0])


@pytest.mark.rest
def test_a_source_without_splits_has_ended(start: Start) -> None:
    process = start(lambda env: env.from_source(Lists(()), _NONE, "l").uid("l").print())
    received = receive_all(process, "l")
    assert (received.number_of_splits, received.by_split, received.ended) == (0, {}, [])
    assert receive_all(process, "l", received.position).number_of_splits is None


def test_number_sequences_in_parts_for_each_task(start: Start) -> None:
    received = receive_all(start(_numbers), "n")
    assert received.number_of_splits == 3
    assert received.all == list(range(1, 20_001))
    assert sorted(received.ended) == [0, 1, 2]


def test_splits_are_read_in_turn(start: Start) -> None:
    received = Received()
    process = start(_numbers)
    source = process.source("n")
    source.open(None)
    receive(source, lambda received: received.number >= 9000, most=500, into=received)
    counts = [len(values) for values in received.by_split.values()]
    assert len(counts) == 3
    assert max(counts) - min(counts) <= 1000


@pytest.mark.rest
def test_lines_of_files(start: Start, tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).write_text("".join(f"{name}{number}\n" for number in range(5000)))
    received = receive_all(start(lambda env: env.read_text_file(str(tmp_path)).set_parallelism(1).uid("f").print()), "f")
    assert received.by_split[0] == [f"{name}{number}" for name in "ab" for number in range(5000)]


@pytest.mark.rest
def test_a_folder_that_is_monitored(start: Start, tmp_path: Path) -> None:
    (tmp_path / "1").write_text("one\n")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    monitored = source.monitor_continuously(Duration.of_millis(20)).build()
    process = start(lambda env: env.from_source(monitored, _NONE, "f").set_parallelism(1).uid("f").print())
    client = process.source("f")
    client.open(None)
    received = receive(client, lambda received: received.number == 1)
    (tmp_path / ".2").write_text("two\n")
    (tmp_path / ".2").rename(tmp_path / "2")
    receive(client, lambda received: received.number == 2, into=received)
    assert received.all == ["one", "two"]
    assert not received.has_ended
    client.close()
    (tmp_path / "3").write_text("three\n")
    again = process.source("f")
    again.open(received.position)
    assert receive(again, lambda received: received.number == 1).all == ["three"]


@pytest.mark.rest
def test_a_source_function_with_timestamps(start: Start) -> None:
    received = receive_all(start(lambda env: env.add_source(Counting(5000)).uid("s").print()), "s")
    assert received.by_split == {0: list(range(1, 5001))}
    assert received.timestamps == {0: list(range(1000, 5_001_000, 1000))}
    assert received.ended == [0]


def _database(folder: Path) -> JdbcSource:
    path = folder / "numbers.db"
    if not path.exists():
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE numbers (number INTEGER, text TEXT)")
            connection.executemany("INSERT INTO numbers VALUES (?, 'a')", [(number,) for number in range(9000)])
        connection.close()
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(f"jdbc:sqlite:{path}").build()
    builder = JdbcSource.builder().set_connection_options(options).set_table("numbers").set_order_columns("number")
    row = Types.ROW_NAMED(["number", "text"], [Types.LONG(), Types.STRING()])
    return builder.set_type_info(row).set_splits("number", 0, 9000, 2).build()


def _of_every_kind(env: StreamExecutionEnvironment, folder: Path) -> None:
    env.from_collection(list(range(9000))).uid("collection").print()
    env.from_source(NumberSequenceSource(1, 9000), _NONE, "numbers").set_parallelism(2).uid("numbers").print()
    env.add_source(Counting(9000)).uid("function").print()
    env.read_text_file(str(folder)).set_parallelism(2).uid("files").print()
    lists = Lists((tuple(range(500)), (), tuple(range(700))))
    env.from_source(lists, _NONE, "lists").uid("lists").print()
    env.from_source(_database(folder.parent), _NONE, "database").set_parallelism(2).uid("database").print()


@pytest.mark.core("files")
@pytest.mark.parametrize("uid", ["collection", "numbers", "function", "files", "lists", "database"])
def test_a_killed_process_goes_on_from_the_last_position(start: Start, tmp_path: Path, uid: str) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for name in "abcd":
        (folder / name).write_text("".join(f"{name}{number}\n" for number in range(2000)))
    whole = receive_all(start(lambda env: _of_every_kind(env, folder)), uid)
    received = Received()
    for part in (100, whole.number // 2):
        process = start(lambda env: _of_every_kind(env, folder))
        client = process.source(uid)
        client.open(received.position)
        receive(client, lambda received, part=part: received.number >= part, most=97, into=received)  # type: ignore[misc]
        os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(ProcessEndedError, match="SIGKILL"):
            receive(client, lambda _: False, into=Received())
    process = start(lambda env: _of_every_kind(env, folder))
    client = process.source(uid)
    client.open(received.position)
    receive(client, lambda _: False, into=received)
    assert received.by_split == whole.by_split
    assert received.timestamps == whole.timestamps
    assert sorted(received.ended) == sorted(whole.ended)
    assert received.number_of_splits == whole.number_of_splits


@pytest.mark.rest
def test_one_that_has_ended_stays_so(start: Start) -> None:
    process = start(_numbers)
    received = receive_all(process, "n")
    again = receive_all(process, "n", received.position)
    assert again.has_ended
    assert (again.number_of_splits, again.by_split, again.ended) == (None, {}, [])
    assert again.position == received.position


@pytest.mark.rest
def test_sources_are_read_beside_each_other_though_one_waits_for_ever(start: Start) -> None:
    def define(env: StreamExecutionEnvironment) -> None:
        env.add_source(Waiting(["a", "b"])).uid("w").print()
        env.from_collection(list(range(1000))).uid("c").print()

    process = start(define)
    waiting = process.source("w")
    waiting.open(None)
    assert receive(waiting, lambda received: received.number == 2).all == ["a", "b"]
    assert waiting.read(10, 0.05) is None
    assert receive_all(process, "c").number == 1000
    assert waiting.read(10, 0.05) is None
    began = time.monotonic()
    process.close()
    assert time.monotonic() - began < 10


def test_an_element_does_not_wait_for_the_next(start: Start) -> None:
    process = start(lambda env: env.add_source(Counting(100, pause=0.3)).uid("s").print())
    client = process.source("s")
    client.open(None)
    received = Received()
    for number in range(1, 4):
        receive(client, lambda received, number=number: received.number >= number, into=received)  # type: ignore[misc]
        assert received.number == number


def test_it_is_read_only_as_far_as_it_is_asked(start: Start, tmp_path: Path) -> None:
    process = start(lambda env: env.add_source(Touching(tmp_path)).uid("s").print())
    client = process.source("s")
    client.open(None)
    time.sleep(0.3)
    assert not (tmp_path / "given").exists()
    received = receive(client, lambda received: received.number >= 1, most=3)
    assert 1 <= received.number <= 3
    time.sleep(0.3)
    assert int((tmp_path / "given").read_text()) <= received.number + 1


@pytest.mark.rest
def test_large_elements_come_in_small_messages(start: Start) -> None:
    values = [f"{number} " + "x" * 100_000 for number in range(600)]
    process = start(lambda env: env.from_collection(values).uid("c").print())
    received = Received()
    client = process.source("c")
    client.open(None)
    end = time.monotonic() + LIMIT
    largest = 0
    while not received.has_ended:
        assert time.monotonic() < end
        given = client.read(100_000, 1.0)
        if given is not None:
            received.take(given)
            payloads = [len(feed.payload) for feed in given.feeds if feed.payload]
            # How large they are is known after the first.
            largest = max([largest, *payloads[0 if received.number > 500 else 1 :]])
    assert received.all == values
    assert 1_000_000 < largest < 5_000_000


def test_a_commit_reaches_the_function_and_so_does_the_end(start: Start, tmp_path: Path) -> None:
    process = start(lambda env: env.add_source(Touching(tmp_path)).uid("s").print())
    client = process.source("s")
    client.open(None)
    received = receive(client, lambda received: received.number >= 1, most=1)
    assert received.position is not None
    client.commit(received.position)
    _until_file(tmp_path / "committed", "[1]")
    (tmp_path / "committed").unlink()
    client.commit(received.position)
    receive(client, lambda received: received.number >= 3, most=1, into=received)
    assert not (tmp_path / "committed").exists()
    assert received.position is not None
    client.commit(received.position)
    _until_file(tmp_path / "committed", f"[{received.number}]")
    process.close()
    assert (tmp_path / "cancelled").exists()
    assert not process.is_alive


@pytest.mark.rest
def test_a_commit_reaches_a_source_that_has_ended(start: Start, lines: list[str]) -> None:
    process = start(lambda env: env.from_source(Lists(((1, 2),), "commit"), _NONE, "l").uid("l").print())
    client = process.source("l")
    client.open(None)
    received = receive(client, lambda _: False)
    assert received.position is not None
    client.commit(received.position)
    end = time.monotonic() + LIMIT
    while "RuntimeError: cannot commit" not in lines:
        assert time.monotonic() < end, lines
        time.sleep(0.01)


@pytest.mark.core("poll")
@pytest.mark.parametrize("where", ["splits", "open", "poll", "position"])
def test_an_error_of_a_source_is_told_with_its_place(start: Start, where: str) -> None:
    process = start(lambda env: env.from_source(Lists(((1, 2),), where), _NONE, "the lists").uid("l").print())
    client = process.source("l")
    client.open(None)
    with pytest.raises(ProgramFailedError, match="RuntimeError: cannot") as raised:
        receive(client, lambda _: False)
    text = str(raised.value)
    assert "'Source: the lists'" in text
    assert "tests/streams/reading/programs.py" in text
    assert "airflow_pipelines/streams" not in text


def test_what_came_before_an_error_is_given_first(start: Start) -> None:
    process = start(lambda env: env.add_source(Failing(700)).uid("s").print())
    client = process.source("s")
    client.open(None)
    received = Received()
    with pytest.raises(ProgramFailedError, match="no more of this"):
        receive(client, lambda _: False, into=received)
    assert received.all == list(range(700))
    with pytest.raises(ProgramFailedError, match="no more of this"):
        receive(client, lambda _: False, into=received)


def test_one_that_fails_leaves_the_others_alone(start: Start) -> None:
    def define(env: StreamExecutionEnvironment) -> None:
        env.add_source(Failing(1, "exit")).uid("s").print()
        env.from_collection([1, 2]).uid("c").print()

    process = start(define)
    client = process.source("s")
    client.open(None)
    with pytest.raises(ProgramFailedError, match=r"SystemExit: .*sys.exit"):
        receive(client, lambda _: False)
    assert receive_all(process, "c").all == [1, 2]


@pytest.mark.rest
def test_an_element_that_cannot_travel_is_named(start: Start) -> None:
    process = start(lambda env: env.add_source(Waiting([{"a": 1}, {"lock": _Unpicklable()}])).uid("s").print())
    client = process.source("s")
    client.open(None)
    with pytest.raises(ProgramFailedError, match="lock") as raised:
        receive(client, lambda _: False)
    assert "Source: Custom Source" in str(raised.value)


class _Unpicklable:
    def __reduce__(self) -> Any:
        if threading.current_thread().name.startswith("gives"):
            raise TypeError("not this one")
        return _Unpicklable, ()


@pytest.mark.rest
def test_a_position_that_has_no_bytes_is_named(start: Start) -> None:
    process = start(lambda env: env.from_source(Lists(((1, 2),), "lock"), _NONE, "l").uid("l").print())
    client = process.source("l")
    client.open(None)
    with pytest.raises(ProgramFailedError, match="the position of split 0 of 'Source: l'"):
        receive(client, lambda _: False)


@pytest.mark.rest
def test_the_position_of_another_kind_of_source_is_refused(start: Start) -> None:
    position = receive_all(start(lambda env: env.from_collection([1]).uid("x").print()), "x").position
    process = start(lambda env: env.add_source(Counting(3)).uid("x").print())
    client = process.source("x")
    client.open(position)
    with pytest.raises(ProgramFailedError, match=r"is a Counting, and was a CollectionSource .*uid"):
        receive(client, lambda _: False)


@pytest.mark.core("-cannot be read")
@pytest.mark.parametrize(("position", "message"), [(b"", "cannot be read"), (pickle.dumps((99,)), "form 99")])
def test_a_position_that_cannot_be_read_is_refused(start: Start, position: bytes, message: str) -> None:
    process = start(lambda env: env.from_collection([1]).uid("x").print())
    client = process.source("x")
    client.open(position)
    with pytest.raises(ProgramFailedError, match=message):
        receive(client, lambda _: False)


@pytest.mark.rest
def test_a_source_that_the_program_does_not_have(start: Start) -> None:
    process = start(lambda env: env.from_collection([1]).uid("x").print())
    client = process.source("y")
    client.open(None)
    with pytest.raises(ProgramFailedError, match="no source with the uid 'y'"):
        receive(client, lambda _: False)


def test_a_process_that_dies_tells_all_who_read(start: Start) -> None:
    def define(env: StreamExecutionEnvironment) -> None:
        env.add_source(Waiting([1])).uid("a").print()
        env.add_source(Waiting([2])).uid("b").print()

    process = start(define)
    clients = [process.source(uid) for uid in "ab"]
    for client in clients:
        client.open(None)
        receive(client, lambda received: received.number == 1)
    os.kill(process.pid, signal.SIGKILL)
    for client in clients:
        with pytest.raises(ProcessEndedError, match="SIGKILL"):
            client.read(1, LIMIT)
    with pytest.raises(ProcessEndedError):
        process.source("c").read(1, LIMIT)


@pytest.mark.rest
def test_a_close_brings_back_who_reads(start: Start) -> None:
    process = start(lambda env: env.add_source(Waiting([])).uid("w").print())
    client = process.source("w")
    client.open(None)
    assert receive(client, lambda received: received.number_of_splits == 1)
    given: list[Any] = []
    thread = threading.Thread(target=lambda: given.append(client.read(1, LIMIT)))
    thread.start()
    time.sleep(0.1)
    client.close()
    client.close()
    thread.join(LIMIT)
    assert given == [None]


def test_a_plan_that_cannot_be_read_is_told_to_who_reads(processes: None, lines: list[str]) -> None:
    process = ReadingProcess(b"no program", ProcessSettings(), lambda _, line: lines.append(line))
    try:
        client = process.source("x")
        client.open(None)
        with pytest.raises(ProgramFailedError):
            client.read(1, LIMIT)
    finally:
        process.close()


class _Printing(Counting):
    def run(self, ctx: Any) -> Any:
        print("begins")  # noqa: T201
        yield from super().run(ctx)


@pytest.mark.rest
def test_what_the_program_prints_is_heard(start: Start, lines: list[str]) -> None:
    receive_all(start(lambda env: env.add_source(_Printing(2)).uid("s").print()), "s")
    end = time.monotonic() + LIMIT
    while lines != ["begins"]:
        assert time.monotonic() < end, lines
        time.sleep(0.01)


@pytest.mark.rest
def test_the_splits_are_the_first_message(start: Start) -> None:
    process = start(_numbers)
    client = process.source("n")
    client.open(None)
    end = time.monotonic() + LIMIT
    given = None
    while given is None:
        assert time.monotonic() < end
        given = client.read(1, 1.0)
    assert given.feeds[0].kind is FeedKind.SPLITS
    assert given.feeds[0].records == 3
