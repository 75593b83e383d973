"""The processor time of another process of this machine: it tells a process that hangs from one that waits for a processor."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_time(pid: int) -> float | None:
    """Return the seconds of processor time that a process and its threads have used.

    :param pid: the process id
    :returns: the seconds, or None if the system does not report them
    """
    fields = _fields(Path(f"/proc/{pid}/stat"))
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S if len(fields) > 12 else None


def wants_cpu(pid: int) -> bool:
    """Return True if a thread of a process runs or waits for a processor right now.

    :param pid: the process id
    """
    return any(_fields(task)[:1] == ["R"] for task in Path(f"/proc/{pid}/task").glob("*/stat"))


class OwnTime:
    """A counter of the time in which a process could make progress, without the time in which it waited for a processor.

    :param pid: the process id; None if the system does not report on the process: all time counts then
    """

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._at = time.monotonic()
        self._had = self._cpu_time()
        self.used = 0.0
        """The number of seconds in which it had a processor while one of its threads wanted one."""
        self.idle = 0.0
        """The number of seconds in which none of its threads wanted a processor."""

    def look(self, at_most: float = math.inf) -> OwnTime:
        """Count the time that has passed since the last look, and return this object.

        :param at_most: the maximum number of seconds to count
        """
        at, had = time.monotonic(), self._cpu_time()
        passed, self._at = min(at - self._at, at_most), at
        got = 0.0 if had is None or self._had is None else min(had - self._had, passed)
        self._had = had
        # The state of the threads is known only for this moment; the processor time covers the interval before it.
        if self._pid is not None and had is not None and (got >= passed / 2 or wants_cpu(self._pid)):
            self.used += got
        else:
            self.idle += passed
        return self

    def _cpu_time(self) -> float | None:
        return None if self._pid is None else cpu_time(self._pid)


def _fields(stat: Path) -> list[str]:
    """Return the fields of a stat file, from the state on; empty if the process is gone or there is no such file."""
    try:
        # The command's name is in parentheses and may hold anything, so the state is what follows the last one.
        return stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
