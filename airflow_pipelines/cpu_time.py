"""How much processor time another process of this machine has had: what tells one that hangs from one that is kept waiting."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_time(pid: int) -> float | None:
    """Seconds of processor time that a process and its threads have used.

    :param pid: the process
    :returns: the seconds, or None where the system does not tell
    """
    fields = _fields(Path(f"/proc/{pid}/stat"))
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S if len(fields) > 12 else None


def wants_cpu(pid: int) -> bool:
    """Whether a thread of a process runs or waits for a processor right now.

    :param pid: the process
    """
    return any(_fields(task)[:1] == ["R"] for task in Path(f"/proc/{pid}/task").glob("*/stat"))


def _fields(stat: Path) -> list[str]:
    """What is in a stat file, from the state on; nothing when the process is gone or there is no such file."""
    try:
        # The command's name is in parentheses and may hold anything, so the state is what follows the last one.
        return stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
