"""Kills a writer between any two lines of the durability modules, or before any change of files, as SIGKILL would: nothing is
cleaned up.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from airflow_pipelines.engine.storage import checkpoint, durable, journal, journal_end

Action = Callable[[Path], object]

TRACED = (checkpoint, durable, journal, journal_end)
KILLED = 9
TIMEOUT_S = 60.0

# The test process has a JVM, its connections and many threads. A process forked from it shares the connections
# and may wait for ever for a lock that some thread held. So the writers are forked from a process without any.
writers = multiprocessing.get_context("forkserver")
writers.set_forkserver_preload(
    [
        "pytest",
        "tests.engine.operators.test_stream_state_kills",
        "tests.engine.storage.test_checkpoint",
        "tests.engine.storage.test_journal",
        "tests.engine.storage.test_starting",
    ]
)


def exit_code(target: Callable[..., object], *arguments: object) -> int:
    """How a process that calls a function of a module ended.

    :param target: Of a module, so that the process finds it.
    :param arguments: What it is called with; they are pickled.
    :returns: The exit code, or minus the number of the signal.
    """
    process = writers.Process(target=target, args=arguments)
    process.start()
    process.join(TIMEOUT_S)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise AssertionError(f"A writer did not end within {TIMEOUT_S:g} s.")
    return process.exitcode


def _die_before(boundary: int, files: frozenset[str], action: Action, folder: Path) -> None:
    left = boundary

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            if left == 0:
                os._exit(KILLED)
            left -= 1
        return trace

    sys.settrace(trace)
    try:
        action(folder)
    finally:
        sys.settrace(None)


_CHANGES = {"os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate"}


def _die_before_change(number: int, action: Action, folder: Path) -> None:
    left = number

    def see(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if writes or event in _CHANGES:
            if left == 0:
                os._exit(KILLED)
            left -= 1

    sys.addaudithook(see)
    action(folder)


def at_every_change(prepare: Callable[[], Path], action: Action, check: Callable[[Path, bool], None]) -> int:
    """Kill before the first change of files, the second ... until the action survives.

    :param prepare: Makes a new folder for each kill.
    :param action: What is killed; a function of a module, which gets the folder.
    :param check: Sees each folder that is left behind, and whether the action survived.
    :returns: How many changes there are.
    """
    return _at_each(prepare, check, lambda number, folder: exit_code(_die_before_change, number, action, folder))


def at_every_boundary(
    prepare: Callable[[], Path],
    action: Action,
    check: Callable[[Path, bool], None],
    modules: Sequence[ModuleType] = TRACED,
) -> int:
    """Kill at the first boundary, the second ... until the action survives.

    :param prepare: Makes a new folder for each kill.
    :param action: What is killed; a function of a module, which gets the folder.
    :param check: Sees each folder that is left behind, and whether the action survived.
    :param modules: A boundary is before any line of these.
    :returns: How many boundaries there are.
    """
    files = frozenset(str(module.__file__) for module in modules)
    return _at_each(prepare, check, lambda number, folder: exit_code(_die_before, number, files, action, folder))


def _at_each(prepare: Callable[[], Path], check: Callable[[Path, bool], None], run: Callable[[int, Path], int]) -> int:
    number = 0
    while True:
        folder = prepare()
        code = run(number, folder)
        assert code in (0, KILLED), code
        check(folder, code == 0)
        if code == 0:
            return number
        number += 1
