"""What Linux knows of a process: its memory, threads, open files and children."""

from __future__ import annotations

from pathlib import Path


def resident(process: int, *, field: str = "VmRSS") -> float:
    """A process's memory in MiB as Linux counts it. ``field``: ``VmRSS`` for now, ``VmHWM`` for the most it ever was."""
    return int(_status(process, field).split()[0]) / 1024


def threads(process: int) -> int:
    """How many threads a process has."""
    return int(_status(process, "Threads"))


def open_files(process: int) -> int:
    """How many files, sockets and pipes a process has open."""
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


def command(process: int) -> str:
    """The name of the program that a process runs."""
    return _status(process, "Name")


def parent(process: int) -> int:
    """The process that started a process."""
    return int(_status(process, "PPid"))


def children(process: int) -> list[int]:
    """The processes that a process has started and that still run."""
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
