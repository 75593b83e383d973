"""The file of results: figures of one run replace those of the same name, others stay with their date."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.machine import Machine
from benchmarks.measure import Bound, Measurement

RESULTS = Path(__file__).parent / "results" / "latest.json"
QUICK_RESULTS = RESULTS.with_name("quick.json")
"""Figures of the short run, which are not comparable with those of the long one."""


@dataclass(frozen=True)
class Dated:
    """A measurement and the time at which it was taken (ISO 8601)."""

    measurement: Measurement
    measured_at: str


@dataclass
class Results:
    """All figures by name, and the machine that took the newest ones."""

    machine: Mapping[str, Any] = field(default_factory=dict)
    figures: dict[str, Dated] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path = RESULTS) -> Results:
        """Read the results of a file; they are empty if there is no file."""
        if not path.exists():
            return cls()
        stored = json.loads(path.read_text())
        figures = {}
        for entry in stored["measurements"]:
            bound = Bound(entry.get("bound", Bound.AT_MOST.value))
            measurement = Measurement(entry["name"], entry["value"], entry["unit"], entry["target"], bound)
            figures[measurement.name] = Dated(measurement, entry.get("measured_at", stored["machine"]["measured_at"]))
        return cls(stored["machine"], figures)

    def add(self, measurements: Iterable[Measurement], machine: Machine) -> None:
        """Take new figures in."""
        self.machine = machine.to_json()
        for measurement in measurements:
            self.figures[measurement.name] = Dated(measurement, machine.measured_at)

    def value(self, name: str) -> float | None:
        """Return a figure's value, or None if it was never taken."""
        found = self.figures.get(name)
        return None if found is None else found.measurement.value

    @property
    def ratios(self) -> dict[str, float]:
        """The figures that have a target, by name."""
        dated = self.figures.values()
        return {one.measurement.name: one.measurement.value for one in dated if one.measurement.target is not None}

    def write(self, path: Path = RESULTS) -> None:
        """Write everything as JSON."""
        measurements = [
            {**asdict(one.measurement), "bound": one.measurement.bound.value, "measured_at": one.measured_at}
            for one in self.figures.values()
        ]
        path.parent.mkdir(exist_ok=True)
        content = {"machine": self.machine, "ratios": self.ratios, "measurements": measurements}
        path.write_text(json.dumps(content, indent=2) + "\n")
