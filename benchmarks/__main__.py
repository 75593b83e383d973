"""Measure, print a table of what has a target, and write ``benchmarks/results/latest.json`` and the plots.

``python -m benchmarks --part tpch --rows 1000000 --queries q1,q3`` measures only that; figures that are not measured again stay as
they were, with their date.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.machine import Machine
from benchmarks.measure import Incomplete, timed
from benchmarks.options import Options
from benchmarks.parts import PARTS, Part
from benchmarks.plots import draw
from benchmarks.results_file import QUICK_RESULTS, RESULTS, Results

QUICK = Options(
    rows=(100_000,),
    queries=("q1", "q3", "q6", "q13", "q18"),
    repeats=3,
    inserts=10,
    steps=200,
    events=1_000_000,
    runs=1,
    budget=240,
    means_of_chosen=True,
)
QUICK_PARTS = ("latency", "tpch", "nexmark", "memory")


def main() -> int:
    """Measure, show, store; the exit code says only whether the measuring worked, not whether targets were met."""
    arguments = _arguments()
    quick: bool = arguments.quick
    path = QUICK_RESULTS if quick else RESULTS
    chosen = arguments.part or (QUICK_PARTS if quick else [part.name for part in PARTS])
    options = QUICK if quick else _options(arguments)
    results, failed = Results.read(path), False
    for part in PARTS:
        if part.name in chosen:
            failed |= not _run(part, options, results)
            # What was measured is kept whatever happens to the next part.
            results.write(path)
    machine = Machine.here()
    Console().print(_table(results, machine))
    if not quick:
        # The plots stand in the page, which shows the long run.
        for plot in draw(results, path.parent):
            print(f"Drawn: {_shown(plot)}")
    print(f"Written to {_shown(path)}")
    return int(failed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    names = [part.name for part in PARTS]
    parser.add_argument("--part", action="append", choices=names, help="measure only this part; may be given several times")
    parser.add_argument("--quick", action="store_true", help=f"a small run of some minutes, written to {QUICK_RESULTS.name}")
    parser.add_argument("--rows", type=_numbers, default=Options.rows, help="lineitems of TPC-H, for example 1000000,10000000")
    parser.add_argument("--queries", type=_words, default=(), help="only these queries, for example q1,q3")
    parser.add_argument("--repeats", type=int, default=Options.repeats, help="how often a figure is taken for its median")
    parser.add_argument("--inserts", type=int, default=Options.inserts, help="one-row changes for the latencies")
    parser.add_argument("--steps", type=int, default=Options.steps, help="small steps for the memory")
    parser.add_argument("--events", type=int, default=Options.events, help="events of Nexmark, a multiple of a million")
    parser.add_argument("--pipelines", type=int, default=Options.pipelines, help="pipelines in one host, for the part 'many'")
    parser.add_argument("--clients", type=int, default=Options.clients, help="clients that work on them at the same time")
    parser.add_argument("--seconds", type=float, default=Options.seconds, help="for how long")
    parser.add_argument("--budget", type=float, help="seconds after which no further query is begun")
    return parser.parse_args()


def _options(arguments: argparse.Namespace) -> Options:
    return Options(
        rows=arguments.rows,
        queries=arguments.queries,
        repeats=arguments.repeats,
        inserts=arguments.inserts,
        steps=arguments.steps,
        events=arguments.events,
        pipelines=arguments.pipelines,
        clients=arguments.clients,
        seconds=arguments.seconds,
        budget=arguments.budget,
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(float(word)) for word in text.split(","))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _run(part: Part, options: Options, results: Results) -> bool:
    """Measure a part and take its figures in; whether it worked."""
    print(f"{part.name}: {part.title}", flush=True)
    failures: list[str] = []
    with timed() as watch:
        try:
            measurements = part.run(options)
        except Incomplete as incomplete:
            measurements, failures = incomplete.measurements, incomplete.failures
        except Exception:  # noqa: BLE001
            # The other parts can still be measured; the exit code tells.
            traceback.print_exc()
            return False
    results.add(measurements, Machine.here())
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{part.name}: {len(measurements)} figures in {watch.seconds:.0f} s", flush=True)
    return not failures


def _table(results: Results, machine: Machine) -> Table:
    table = Table(title=f"{machine.cores} cores, {machine.memory_gib} GiB, {machine.cpu}; PySpark {machine.pyspark}")
    for heading in ("measurement", "value", "target", "", "measured"):
        table.add_column(heading, justify="left" if heading == "measurement" else "right", overflow="fold")
    for name, dated in results.figures.items():
        if "." in name:
            continue
        item = dated.measurement
        target = "" if item.target is None else f"{item.bound.value} {item.target:g} {item.unit}"
        verdict = {None: "", True: "met", False: "[bold red]missed[/]"}[item.met]
        table.add_row(name, f"{item.value:.3f} {item.unit}", target, verdict, dated.measured_at[:16])
    return table


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    sys.exit(main())
