"""Samples of the resources of a service, its hosts and its folders."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Engine, func, inspect, select, table

from airflow_pipelines.contract.registry import Registry
from tools.process_figures import children, command, open_files, parent, resident, threads

T = TypeVar("T")
MIB = 2**20
JCMD_S = 60.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The figures by name at one point in time (monotonic seconds)."""

    at: float
    figures: dict[str, float]


class Sampler:
    """A sampler of one service over one store."""

    def __init__(self, home: Path, engine: Engine, service: int) -> None:
        """Prepare the samples of a service.

        :param home: the folder with the store, the storage and the logs
        :param engine: the store
        :param service: the service's process
        """
        self._home = home
        self._engine = engine
        self._service = service

    def sample(self) -> Sample:
        """Return all current figures."""
        figures = _of_process("service", self._service)
        for host in Registry(self._engine).live_hosts():
            if host.pid is not None and host.heartbeat is not None:
                figures |= _of_host(f"{host.kind} host", host.pid)
        for folder in ("storage", "logs", "spark"):
            figures |= _of_folder(folder, self._home / folder)
        for store in sorted(self._home.glob("store.sqlite*")):
            figures[f"{store.name}, MiB"] = store.stat().st_size / MIB
        return Sample(time.monotonic(), figures | self._rows())

    def _rows(self) -> dict[str, float]:
        with self._engine.connect() as connection:
            names = inspect(connection).get_table_names()
            return {
                f"store, rows of {name}": float(connection.execute(select(func.count()).select_from(table(name))).scalar_one())
                for name in sorted(names)
            }


def _of_host(name: str, python: int) -> dict[str, float]:
    jvm = _jvm_of(python)
    figures = _of_process(f"{name}, Python", python) | _of_process(f"{name}, JVM", jvm) | _of_heap(f"{name}, JVM", jvm)
    daemons = [child for child in children(jvm) if child != python]
    none: list[int] = []
    workers = [process for daemon in daemons for process in (daemon, *_read(children, daemon, none))]
    figures[f"{name}, Python workers"] = len(workers)
    figures[f"{name}, Python workers, MiB"] = sum(_read(resident, worker, 0.0) for worker in workers)
    return figures


def _jvm_of(python: int) -> int:
    """Return the JVM beside a host's Python, whichever of the two started the other."""
    for process in (parent(python), *children(python)):
        if command(process) == "java":
            return process
    raise ValueError(f"process {python} has no JVM")


def _read(figure: Callable[[int], T], process: int, ended: T) -> T:
    """Return a figure of a process that may end at any time."""
    try:
        return figure(process)
    except (OSError, ValueError):
        return ended


def _of_process(name: str, process: int) -> dict[str, float]:
    return {
        f"{name}, resident MiB": resident(process),
        f"{name}, threads": threads(process),
        f"{name}, open files": open_files(process),
    }


def _of_heap(name: str, jvm: int) -> dict[str, float]:
    """Return the sizes of the classes and of the objects that a garbage collection would leave; nothing without a JDK."""
    jcmd = shutil.which("jcmd")
    if jcmd is None:
        return {}

    def ask(what: str) -> str:
        return subprocess.run([jcmd, str(jvm), what], check=True, capture_output=True, text=True, timeout=JCMD_S).stdout

    figures = {}
    if live := re.search(r"^Total +\d+ +(\d+)", ask("GC.class_histogram"), re.MULTILINE):
        figures[f"{name}, reachable objects, MiB"] = int(live[1]) / MIB
    if classes := re.search(r"Metaspace +used (\d+)K", ask("GC.heap_info")):
        figures[f"{name}, classes, MiB"] = int(classes[1]) / 1024
    return figures


def _of_folder(name: str, folder: Path) -> dict[str, float]:
    count, size = 0, 0
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                count, size = count + 1, size + path.stat().st_size
        except FileNotFoundError:
            # Removed since it was listed.
            continue
    return {f"{name}, files": count, f"{name}, MiB": size / MIB}
