"""The processes of hosts on this machine: whether they are alive, and how to end them with everything they started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path
from uuid import UUID

TAIL = 20
"""The number of log lines that show how a process ended."""


def this_machine() -> str:
    """Return the name under which hosts of this machine register."""
    return socket.gethostname()


def is_alive(pid: int) -> bool:
    """Return True if a process runs; a process that ended but was not waited for (a zombie) does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _state(pid) not in {"Z", "X"}


def is_host(pid: int, host_id: UUID) -> bool:
    """Return True if a process is a host that spark-submit started; its id may belong to another process by now."""
    return str(host_id) in _command_line(pid)


def kill_host(pid: int, host_id: UUID) -> None:
    """Kill the process group of a host that spark-submit started on this machine.

    Does nothing unless the process's command line names the host: the process id may belong to another process by now.
    """
    if not is_host(pid, host_id):
        return
    try:
        group = os.getpgid(pid)
        if group == os.getpgrp():
            os.kill(pid, signal.SIGKILL)
        else:
            os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def last_lines(path: Path) -> list[str]:
    """Return the last :data:`TAIL` lines of a log; empty if there is no log yet."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 32_768))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()][-TAIL:]


def _state(pid: int) -> str:
    try:
        # The command's name is in parentheses and may hold anything, so the state is what follows the last one.
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return _run_ps(pid, "stat")[:1]


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return _run_ps(pid, "command")


def _run_ps(pid: int, column: str) -> str:
    """Read a column of ps, for systems without /proc; empty if the process is gone or there is no ps either."""
    try:
        answer = subprocess.run(
            ["/bin/ps", "-o", f"{column}=", "-p", str(pid)], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip()
