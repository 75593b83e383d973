"""Run every benchmark, print a table and write ``benchmarks/results/latest.json``."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import lifecycle, step_cost
from benchmarks.machine import Machine
from benchmarks.measure import Measurement

RESULTS = Path(__file__).parent / "results" / "latest.json"


def main() -> int:
    """Measure, show, store; the exit code says only whether the measuring worked, not whether targets were met."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of state for the step measurement")
    parser.add_argument("--inserts", type=int, default=50, help="one-row inserts for the latency measurement")
    arguments = parser.parse_args()

    measurements = [*lifecycle.measure(inserts=arguments.inserts), *step_cost.measure(rows=arguments.rows)]
    machine = Machine.here()
    Console().print(_table(measurements, machine))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        json.dumps({"machine": machine.to_json(), "measurements": [asdict(item) for item in measurements]}, indent=2) + "\n"
    )
    print(f"Written to {RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}")
    return 0


def _table(measurements: list[Measurement], machine: Machine) -> Table:
    table = Table(title=f"{machine.cores} cores, {machine.memory_gib} GiB, {machine.cpu}; PySpark {machine.pyspark}")
    for heading in ("measurement", "value", "target", ""):
        table.add_column(heading, justify="left" if heading == "measurement" else "right")
    for item in measurements:
        target = "" if item.target is None else f"<= {item.target:g} {item.unit}"
        verdict = {None: "", True: "met", False: "[bold red]missed[/]"}[item.met]
        table.add_row(item.name, f"{item.value:.3f} {item.unit}", target, verdict)
    return table


if __name__ == "__main__":
    sys.exit(main())
