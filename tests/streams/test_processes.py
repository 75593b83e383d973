"""Processes of programs: connected, heard, and gone when they shall be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.processes import LONGEST_LINE, ChildProcess, ProcessSettings, lines_of

pytestmark = pytest.mark.core

_MODULE = "tests.streams.child_process"
_ROOT = str(Path(__file__).parents[2])
_LIMIT = 20.0


def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _LIMIT
    while not condition():
        assert time.monotonic() < end, f"waited {_LIMIT} s until {what}"
        time.sleep(0.01)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def child(lines: list[str], processes: None) -> Iterator[ChildProcess]:
    process = ChildProcess(_MODULE, ProcessSettings(paths=(_ROOT,)), lines.append)
    yield process
    process.close()


def _ask(child: ChildProcess, what: str, argument: object = None) -> object:
    child.connection.send((what, argument))
    assert child.connection.poll(_LIMIT)
    return child.connection.recv()


def test_begins_its_path_with_what_it_is_told_and_finds_this_package(child: ChildProcess) -> None:
    paths = _ask(child, "paths")
    assert isinstance(paths, list)
    assert paths[0] == _ROOT
    assert "" not in paths


@pytest.mark.processes
def test_has_its_own_environment_and_folder(tmp_path: Path) -> None:
    settings = ProcessSettings(paths=(_ROOT,), folder=str(tmp_path), environment={"ONLY": "this"})
    child = ChildProcess(_MODULE, settings, lambda _: None)
    try:
        environment, folder = _ask(child, "environment")  # type: ignore[misc]
        assert environment["ONLY"] == "this"
        assert "PATH" not in environment
        assert folder == str(tmp_path)
    finally:
        child.close()


def test_output_of_both_kinds_comes_while_it_runs(child: ChildProcess, lines: list[str]) -> None:
    _ask(child, "print", "näh")
    _until(lambda: lines == ["näh", "näh"], "both lines have come")


def test_a_flood_of_output_comes_whole(child: ChildProcess, lines: list[str]) -> None:
    for _ in range(20):
        _ask(child, "write", b"".join(b"line %d\n" % number for number in range(10_000)))
    _until(lambda: len(lines) == 200_000, "all lines have come")
    assert lines[:10_000] == [f"line {number}" for number in range(10_000)]


def test_one_who_fails_to_take_a_line_does_not_hold_the_process_up(processes: None, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(line: str) -> None:
        raise ValueError(line)

    child = ChildProcess(_MODULE, ProcessSettings(paths=(_ROOT,)), refuse)
    try:
        for _ in range(5):
            _ask(child, "write", b"x\n" * 50_000)
    finally:
        child.close()
    assert [record.getMessage() for record in caplog.records] == [f"lines of the output of process {child.pid} are lost"]


def test_exit_code_and_last_lines_are_in_the_error(child: ChildProcess) -> None:
    child.connection.send(("exit", 7))
    with pytest.raises(EOFError):
        child.connection.recv()
    assert not child.is_alive or child.diagnose_end()
    text = str(child.diagnose_end())
    assert "ended with exit code 7" in text
    assert "about to end" in text


def test_a_signal_is_named(child: ChildProcess) -> None:
    child.connection.send(("signal", "SIGKILL"))
    with pytest.raises(EOFError):
        child.connection.recv()
    text = str(child.diagnose_end())
    assert "SIGKILL" in text
    assert "memory" in text


def test_a_crash_says_where(child: ChildProcess) -> None:
    child.connection.send(("signal", "SIGSEGV"))
    with pytest.raises(EOFError):
        child.connection.recv()
    text = str(child.diagnose_end())
    assert "SIGSEGV" in text
    assert "child_process.py" in text


def test_close_lets_it_end_by_itself(child: ChildProcess, lines: list[str]) -> None:
    _ask(child, "print", "x")
    child.close()
    assert "saw the end" in lines
    assert not child.is_alive
    child.close()


def test_close_ends_one_that_does_not_listen_and_what_it_has_started(child: ChildProcess) -> None:
    grandchild = _ask(child, "child", 600)
    assert isinstance(grandchild, int)
    child.connection.send(("sleep", 600))
    began = time.monotonic()
    child.close(0.2)
    assert time.monotonic() - began < 10
    assert not child.is_alive
    _until(lambda: not _lives(grandchild), "the process that it started is gone")


def test_close_wakes_up_who_waits_for_a_message(child: ChildProcess) -> None:
    seen: list[BaseException] = []

    def wait() -> None:
        try:
            child.connection.recv()
        except (EOFError, OSError) as error:
            seen.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    child.close()
    thread.join(_LIMIT)
    assert seen


def test_lives_on_when_the_thread_has_ended_that_started_it(processes: None) -> None:
    made: list[ChildProcess] = []
    thread = threading.Thread(target=lambda: made.append(ChildProcess(_MODULE, ProcessSettings(paths=(_ROOT,)), lambda _: None)))
    thread.start()
    thread.join(_LIMIT)
    try:
        time.sleep(0.2)
        assert _ask(made[0], "paths")
    finally:
        made[0].close()


@pytest.mark.parametrize("doing", [("sleep", 600), ("paths", None)])
def test_ends_with_its_parent(doing: tuple[str, object], processes: None) -> None:
    code = f"""
import time
from airflow_pipelines.streams.processes import ChildProcess, ProcessSettings
child = ChildProcess({_MODULE!r}, ProcessSettings(paths=({_ROOT!r},)), print)
child.connection.send(("paths", None))
child.connection.recv()
child.connection.send({doing!r})
print(child.pid, flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=_ROOT)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
        assert _lives(pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait(_LIMIT)
        _until(lambda: not _lives(pid), "the child is gone")


@pytest.mark.processes
def test_an_interpreter_that_is_not_there_is_named() -> None:
    with pytest.raises(StreamProgramError, match="/no/such/python"):
        ChildProcess(_MODULE, ProcessSettings(executable="/no/such/python"), lambda _: None)


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"", []),
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\n\nb", ["a", "", "b"]),
        (b"\xff\n", ["�"]),
        (b"x" * (LONGEST_LINE + 1) + b"\n", ["x" * LONGEST_LINE, "x"]),
    ],
)
def test_lines(written: bytes, lines: list[str]) -> None:
    read, write = os.pipe()
    os.write(write, written[:10])
    os.write(write, written[10:])
    os.close(write)
    try:
        assert list(lines_of(read)) == lines
    finally:
        os.close(read)


def test_a_long_line_without_an_end_comes_in_parts() -> None:
    read, write = os.pipe()
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(lines_of(read)))
    thread.start()
    for _ in range(10):
        os.write(write, b"y" * LONGEST_LINE)
    os.close(write)
    thread.join(_LIMIT)
    os.close(read)
    assert "".join(found) == "y" * LONGEST_LINE * 10
    assert len(found) == 10
