"""Programs in processes of their own, as a pipeline uses them."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from airflow_pipelines.datastream import KeyedProcessFunction, MapFunction
from airflow_pipelines.datastream.state import ListStateDescriptor, ValueStateDescriptor
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.processes import ProcessEndedError, ProcessSettings
from airflow_pipelines.streams.worker.client import ProgramFailedError, WorkerClosedError, WorkerProcess
from airflow_pipelines.streams.worker.messages import StoredPages
from tests.datastream.programs import environment
from tests.streams.worker.programs import ROOT, Kept, elements, ended, program, rows, source, splits, start

pytestmark = [pytest.mark.processes, pytest.mark.core]
_LIMIT = 30.0


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


def counting(**settings):
    return program(source(environment()).key_by(lambda value: value).process(Count()).uid("count"), **settings)


def calling(function):
    """A program that calls a function with each element."""
    return program(source(environment()).map(function).name("call").uid("call"))


@pytest.fixture
def open_process():
    """Starts and opens processes, and ends them."""
    started = []

    def begin(bound, lines=None, kept=None, **settings):
        worker = start(bound, lines, **settings)
        started.append(worker)
        kept = kept or Kept()
        worker.open(kept.rest, database=kept.stored())
        return worker

    yield begin
    for worker in started:
        worker.close(0)


def until(condition, what):
    end = time.monotonic() + _LIMIT
    while not condition():
        assert time.monotonic() < end, f"waited {_LIMIT} s until {what}"
        time.sleep(0.01)


def test_a_program_goes_on_from_its_changes_in_another_process(open_process):
    bound, kept = counting(), Kept()
    first = open_process(bound)
    assert rows(first.step(1, [splits(1), elements("ab")])) == [("('a', 1)",), ("('b', 1)",)]
    kept.save(first)
    assert rows(first.step(2, [elements("aa")])) == [("('a', 2)",), ("('a', 3)",)]
    first.close(0)
    second = open_process(bound, kept=kept)
    stepped = second.step(3, [elements("a"), ended()])
    assert rows(stepped) == [("('a', 2)",)]
    assert stepped.has_ended


def talk(value):
    print("said", value)  # noqa: T201
    print("whispered", value, file=sys.stderr)  # noqa: T201
    return value


@pytest.mark.rest
def test_lines_come_while_the_program_runs_with_the_names_of_their_streams(open_process):
    lines = []
    worker = open_process(calling(talk), lines)
    worker.step(1, [splits(1), elements([7])])
    until(lambda: len(lines) == 2, "both lines have come")
    assert sorted(lines) == [("stderr", "whispered 7"), ("stdout", "said 7")]


def chatter(value):
    sys.stdout.write("x" * 200_000 + "\n")
    for number in range(20_000):
        print(number)  # noqa: T201
    return value


@pytest.mark.rest
def test_a_program_that_prints_a_lot_goes_on(open_process):
    lines = []
    worker = open_process(calling(chatter), lines)
    assert rows(worker.step(1, [splits(1), elements([1, 2])])) == [("1",), ("2",)]
    until(lambda: lines and lines[-1] == ("stdout", "19999") and lines.count(lines[-1]) == 2, "all lines have come")


def close_streams(value):
    sys.stdin.read()
    for file in (0, 1):
        os.close(file)
    return value


@pytest.mark.rest
def test_a_program_that_closes_its_streams_goes_on(open_process):
    worker = open_process(calling(close_streams))
    assert rows(worker.step(1, [splits(1), elements([1])])) == [("1",)]
    assert rows(worker.step(2, [ended()])) == []


def leave(value):
    sys.exit(value)


@pytest.mark.rest
def test_sys_exit_is_a_failure_of_the_function_that_calls_it(open_process):
    worker = open_process(calling(leave))
    with pytest.raises(ProgramFailedError, match=r"SystemExit: .*sys\.exit\(3\)") as failed:
        worker.step(1, [splits(1), elements([3])])
    assert failed.value.failure.place.endswith(f"test_client.py:{leave.__code__.co_firstlineno + 1}")


def fail(value):
    return 1 // value


def test_a_failure_says_operator_element_and_place_and_ends_the_program(open_process):
    worker = open_process(calling(fail))
    with pytest.raises(ProgramFailedError) as failed:
        worker.step(1, [splits(1), elements([1, 0, 2])])
    failure = failed.value.failure
    assert (failure.type, failure.message, failure.operator) == ("ZeroDivisionError", "integer division or modulo by zero", "call")
    assert failure.notes == ("in operator 'call', element: 0",)
    assert failure.place == f"tests/streams/worker/test_client.py:{fail.__code__.co_firstlineno + 1}"
    assert "return 1 // value" in failure.traceback
    assert "airflow_pipelines" not in failure.traceback
    for ask in (lambda: worker.step(2, []), lambda: worker.take_checkpoint("checkpoint"), worker.notify_checkpoint_complete):
        with pytest.raises(ProgramFailedError, match="division"):
            ask()
    worker.close()


SCRIPT = """
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import shapes
from airflow_pipelines.datastream import KeyedProcessFunction
from airflow_pipelines.datastream.state import ListStateDescriptor, ValueStateDescriptor
from tests.datastream.programs import environment
from tests.streams.worker.programs import program, source


@dataclass
class Seen:
    values: tuple = ()


class Remember(KeyedProcessFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value, ctx):
        seen = self.seen.value() or Seen()
        self.seen.update(Seen((*seen.values, shapes.Square(value))))
        yield sum(square.area() for square in self.seen.value().values)


bound = program(source(environment()).key_by(lambda value: 0).process(Remember()).uid("remember"))
Path(sys.argv[1]).write_bytes(replace(bound, folder=str(Path.cwd())).to_bytes())
"""
SHAPES = """
class Square:
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side ** 2
"""


@pytest.mark.rest
def test_classes_of_the_executed_file_and_of_its_modules_are_kept(tmp_path, open_process):
    compiled, deployed = tmp_path / "compiled", tmp_path / "deployed"
    for folder in (compiled, deployed):
        folder.mkdir()
        (folder / "program.py").write_text(SCRIPT)
        (folder / "shapes.py").write_text(SHAPES)
    environ = {**os.environ, "PYTHONPATH": ROOT}
    subprocess.run([sys.executable, "program.py", str(tmp_path / "plan")], cwd=compiled, env=environ, check=True, timeout=60)
    lines, kept = [], Kept()
    settings = ProcessSettings(paths=(str(deployed), ROOT))

    def begin():
        worker = WorkerProcess((tmp_path / "plan").read_bytes(), settings, lambda _, line: lines.append(line))
        worker.open(kept.rest, database=kept.stored())
        return worker

    first = begin()
    assert rows(first.step(1, [splits(1), elements([2, 3])])) == [("4",), ("13",)]
    kept.save(first)
    first.close()
    second = begin()
    assert rows(second.step(2, [elements([1])])) == [("14",)]
    with pytest.raises(ProgramFailedError) as failed:
        second.step(3, [elements(["x"])])
    second.close()
    assert failed.value.failure.place == "shapes.py:7"
    assert 'File "program.py", line 25, in process_element' in failed.value.failure.traceback
    assert "yield sum(" in failed.value.failure.traceback
    assert lines == []


def sleep(value):
    print("sleeping", flush=True)  # noqa: T201
    time.sleep(value)
    return value


def in_a_thread(ask):
    """Asks in a thread; gives the thread and the error that it gets."""
    errors = []

    def run():
        try:
            ask()
        except Exception as error:  # noqa: BLE001 (the test looks at it)
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def test_a_process_that_is_killed_while_it_works_is_noticed_at_once(open_process):
    lines = []
    worker = open_process(calling(sleep), lines)
    thread, errors = in_a_thread(lambda: worker.step(1, [splits(1), elements([600])]))
    until(lambda: lines, "the function is called")
    began = time.monotonic()
    os.kill(worker.pid, signal.SIGKILL)
    thread.join(_LIMIT)
    assert time.monotonic() - began < 2
    [error] = errors
    assert isinstance(error, ProcessEndedError)
    for part in ("SIGKILL", "memory runs short", "sleeping"):
        assert part in str(error)
    with pytest.raises(ProcessEndedError, match="SIGKILL"):
        worker.step(2, [])


def test_a_process_that_was_killed_while_it_did_nothing_is_named_with_each_request(open_process):
    worker = open_process(calling(sleep))
    os.kill(worker.pid, signal.SIGKILL)
    until(lambda: not worker._child.is_alive, "the process ends")
    for ask in (worker.notify_checkpoint_complete, lambda: worker.take_checkpoint("checkpoint"), lambda: worker.step(1, [])):
        with pytest.raises(ProcessEndedError, match="SIGKILL"):
            ask()


def fork_and_die(value):
    if os.fork() == 0:
        time.sleep(600)
    os._exit(value)


@pytest.mark.rest
def test_the_end_is_noticed_when_something_that_it_started_lives_on(open_process):
    worker = open_process(calling(fork_and_die))
    began = time.monotonic()
    with pytest.raises(ProcessEndedError, match=r"exit code 5.*os\._exit"):
        worker.step(1, [splits(1), elements([5])])
    assert time.monotonic() - began < 10


@pytest.mark.rest
def test_closing_interrupts_a_step(open_process):
    lines = []
    worker = open_process(calling(sleep), lines)
    thread, errors = in_a_thread(lambda: worker.step(1, [splits(1), elements([600])]))
    until(lambda: lines, "the function is called")
    began = time.monotonic()
    worker.close(0.2)
    thread.join(_LIMIT)
    assert time.monotonic() - began < 5
    assert [type(error) for error in errors] == [WorkerClosedError]
    with pytest.raises(WorkerClosedError):
        worker.take_checkpoint("checkpoint")
    worker.close()


class Tally(MapFunction):
    def open(self, runtime_context):
        self.counter = runtime_context.get_metrics_group().counter("seen")

    def map(self, value):
        self.counter.inc()
        time.sleep(value)
        return value


@pytest.mark.rest
def test_metrics_are_exact_when_nothing_runs_and_hold_nothing_up(open_process):
    worker = open_process(program(source(environment()).map(Tally()).uid("tally")))
    worker.step(1, [splits(1), elements([0])])
    assert worker.step(2, [elements([0])]).metrics == {}, "a step tells them once a second"
    assert worker.metrics()["tally", 0].counted == {"seen": 2}
    thread, errors = in_a_thread(lambda: worker.step(3, [elements([1])]))
    until(lambda: worker.metrics() is None, "the step runs")
    thread.join(_LIMIT)
    assert errors == []
    assert worker.metrics()["tally", 0].counted == {"seen": 3}
    worker.close()
    with pytest.raises(WorkerClosedError):
        worker.metrics()


@pytest.mark.rest
def test_closing_waits_for_a_step_that_ends_in_time(open_process):
    lines = []
    worker = open_process(calling(sleep), lines)
    thread, errors = in_a_thread(lambda: worker.step(1, [splits(1), elements([0.5])]))
    until(lambda: lines, "the function is called")
    worker.close(_LIMIT)
    thread.join(_LIMIT)
    assert errors == []


class Farewell(MapFunction):
    def __init__(self, seconds):
        self.seconds = seconds

    def map(self, value):
        return value

    def close(self):
        print("closing", flush=True)  # noqa: T201
        time.sleep(self.seconds)
        print("closed")  # noqa: T201


@pytest.mark.rest
@pytest.mark.parametrize(("seconds", "patience", "said"), [(0, 10.0, ["closing", "closed"]), (600, 0.5, ["closing"])])
def test_closing_lets_functions_close_for_some_time(open_process, seconds, patience, said):
    lines = []
    worker = open_process(calling(Farewell(seconds)), lines)
    began = time.monotonic()
    worker.close(patience)
    assert time.monotonic() - began < 10
    assert [line for _, line in lines] == said


def hoard(value):
    return len(bytearray(value))


@pytest.mark.rest
def test_memory_beyond_the_limit_is_a_failure_of_the_function(open_process):
    worker = open_process(calling(hoard), memory_bytes=2 * 1024**3)
    assert rows(worker.step(1, [splits(1), elements([10_000_000])])) == [("10000000",)]
    with pytest.raises(ProgramFailedError, match="MemoryError"):
        worker.step(2, [elements([8 * 1024**3])])


def test_pages_that_cannot_be_read_to_their_end_do_not_leave_a_process_that_waits(open_process):
    def broken():
        yield StoredPages("count", {})
        raise OSError("the disk is gone")

    worker = start(counting())
    with pytest.raises(OSError, match="the disk is gone"):
        worker.open(None, broken())
    with pytest.raises(WorkerClosedError):
        worker.step(1, [])
    worker.close()


@pytest.mark.rest
def test_large_state_comes_back_in_another_process(open_process):
    """20 MB of state, which no message carries."""
    bound, kept = program(source(environment()).key_by(lambda value: value).process(Fill()).uid("fill")), Kept()
    worker = open_process(bound)
    worker.step(1, [splits(1), elements(range(2_000))])
    kept.save(worker)
    assert len(kept.rest) < 10_000
    assert rows(open_process(bound, kept=kept).step(2, [elements([7])])) == [("2",)]


def test_a_checkpoint_that_cannot_be_written_is_told(open_process, tmp_path):
    worker = open_process(counting())
    worker.step(1, [splits(1), elements("abc")])
    (tmp_path / "file").write_text("")
    with pytest.raises(StreamProgramError, match=r"file/checkpoint"):
        worker.take_checkpoint(str(tmp_path / "file" / "checkpoint"))


class Fill(KeyedProcessFunction):
    """Keeps 10 kB for each key."""

    def open(self, runtime_context):
        self.kept = runtime_context.get_list_state(ListStateDescriptor("kept"))

    def process_element(self, value, ctx):
        self.kept.add(os.urandom(10_000))
        yield len(list(self.kept.get()))
