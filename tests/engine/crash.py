"""Kills a writer between any two lines of the durability modules, as SIGKILL would: nothing is cleaned up."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import Any

from airflow_pipelines.engine import checkpoint, durable, journal, journal_end

TRACED = (checkpoint, durable, journal, journal_end)
SURVIVED = 0
KILLED = 9


def run_and_kill(action: Callable[[], object], boundary: int, modules: Sequence[ModuleType]) -> bool:
    """Run ``action`` in a forked process that dies before its line number ``boundary``; True when it died."""
    child = os.fork()
    if child == 0:
        traced = {module.__file__ for module in modules}
        left = boundary

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal left
            if frame.f_code.co_filename not in traced:
                return None
            if event == "line":
                if left == 0:
                    os._exit(KILLED)
                left -= 1
            return trace

        sys.settrace(trace)
        code = 3
        try:
            action()
            code = SURVIVED
        finally:
            sys.settrace(None)
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (SURVIVED, KILLED), code
    return code == KILLED


def at_every_boundary(
    prepare: Callable[[], Callable[[], object]], check: Callable[[bool], None], modules: Sequence[ModuleType] = TRACED
) -> int:
    """Kill at the first boundary, the second ... until the action survives; ``check`` sees each state left behind."""
    boundary = 0
    while True:
        action = prepare()
        died = run_and_kill(action, boundary, modules)
        check(not died)
        if not died:
            return boundary
        boundary += 1
