"""The systems that are compared, each run in an environment and processes of its own."""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.streams.workloads import Workload
from tools.flink import ROOT, Flink, run

CHECKED_ELEMENTS = 3_000
HEAP = "4g"
"""Memory of Flink's Java process."""


class System(Protocol):
    """Something that runs the workloads. A further way to run ours is one more of these."""

    @property
    def name(self) -> str:
        """As in the names of figures."""

    def rate(self, workload: Workload, repeats: int) -> float:
        """Elements per second: the median of some runs, without starting and ending.

        :raises FlinkUnavailableError: when a process fails; the text has its output
        """

    def results(self, workload: Workload) -> list[Any] | None:
        """Return the sorted results over few elements, or None if the system cannot give them."""


@dataclass(frozen=True)
class Packaged:
    """A package whose Python runs :mod:`benchmarks.streams.job`.

    :param name: as in the names of figures, and of the package
    :param python: the Python that has it
    :param environment: variables of its process
    :param share: which part of the elements of programs with keys it is given; a slow system is measured over fewer
    :param is_checked: whether its results are compared
    """

    name: str
    python: Path
    environment: Callable[[], Mapping[str, str]]
    share: float = 1.0
    is_checked: bool = True

    def rate(self, workload: Workload, repeats: int) -> float:
        """Elements per second."""
        elements = int(workload.elements * (self.share if workload.keys else 1.0))
        answer = self._answer(workload, "--elements", str(elements), "--repeats", str(repeats))
        seconds = statistics.median(answer["seconds"])
        if seconds <= 0:
            raise ValueError(f"{self.name} takes as long for one element as for {elements}, so its rate cannot be told")
        return elements / seconds

    def results(self, workload: Workload) -> list[Any] | None:
        """Return the sorted results over few elements, or None if this system is not checked."""
        if not self.is_checked:
            return None
        found: list[Any] = self._answer(workload, "--elements", str(CHECKED_ELEMENTS), "--check")["results"]
        return found

    def _answer(self, workload: Workload, *options: str) -> dict[str, Any]:
        command = [self.python, "-m", "benchmarks.streams.job", "--package", self.name, "--workload", workload.name, *options]
        found: dict[str, Any] = json.loads(run(command, self.environment()).splitlines()[-1])
        return found


def ours() -> Packaged:
    """Programs run as scripts, here."""
    return Packaged("ours", Path(sys.executable), ours_environment)


def ours_environment() -> dict[str, str]:
    """Variables for a process with our package."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def flinks(flink: Flink) -> tuple[Packaged, Packaged]:
    """Flink in its two modes.

    A twentieth of the elements is enough for the slower one, whose rate does not depend on their number. It runs the same operators
    as the other.
    """
    environment = lambda: flink.environment(HEAP)  # noqa: E731
    return (
        Packaged("flink_thread", flink.python, environment),
        Packaged("flink_process", flink.python, environment, share=0.05, is_checked=False),
    )
