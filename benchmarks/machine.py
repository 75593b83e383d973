"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pendulum


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine and the versions that matter for a comparison."""

    measured_at: str
    cpu: str
    cores: int
    memory_gib: float
    system: str
    python: str
    pyspark: str

    @classmethod
    def here(cls) -> Machine:
        """Describe this machine, now."""
        return cls(
            measured_at=pendulum.now("UTC").to_iso8601_string(),
            cpu=_cpu_model(),
            cores=os.cpu_count() or 0,
            memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            system=platform.platform(),
            python=platform.python_version(),
            pyspark=version("pyspark"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the description as it is stored with the results."""
        return asdict(self)


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
