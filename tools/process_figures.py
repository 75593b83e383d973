"""The figures of a process in Linux: its memory, threads, open files and children."""

from __future__ import annotations

from pathlib import Path


def resident(process: int, *, field: str = "VmRSS") -> float:
    """Return a process's memory in MiB as Linux counts it. ``field``: ``VmRSS`` for the current value, ``VmHWM`` for the peak."""
    return int(_status(process, field).split()[0]) / 1024


def threads(process: int) -> int:
    """Return the number of threads of a process."""
    return int(_status(process, "Threads"))


def open_files(process: int) -> int:
    """Return the number of open files, sockets and pipes of a process."""
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def command(process: int) -> str:
    """Return the name of the program that a process runs."""
    return _status(process, "Name")


def parent(process: int) -> int:
    """Return the parent of a process."""
    return int(_status(process, "PPid"))


def children(process: int) -> list[int]:
    """Return the child processes of a process that still run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if parent(int(folder.name)) == process:
                found.append(int(folder.name))
        except (OSError, ValueError):
            # It has ended since it was listed.
            continue
    return found


def _status(process: int, field: str) -> str:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return line.partition(":")[2].strip()
    raise ValueError(f"process {process} has no {field}")
