"""The soak test, ``python -m tools.soak --minutes 60``: several clients drive pipelines without pause.

The exit code is 1 if something was wrong, or if a figure that should be bounded keeps growing beyond its bound.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from airflow_pipelines.common.database import open_database
from airflow_pipelines.common.settings import Settings
from airflow_pipelines.sdk.client import PipelineClient
from tools.console import say
from tools.served import served, stop_hosts
from tools.soak.driver import Driver
from tools.soak.figures import Sample, Sampler
from tools.soak.growth import Growth, growths, slowdowns
from tools.soak.record import Record
from tools.soak.visitors import Guests, Reader
from tools.soak.workloads import workloads

READERS = 2
SAMPLE_S = 30.0
FEWEST_SAMPLES = 24
END_S = 900.0
"""The seconds that clients may take to finish."""


def main() -> int:
    """Run the soak."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--folder", type=Path, default=None, help="where to keep everything; a temporary folder by default")
    arguments = parser.parse_args()
    say(f"seed {arguments.seed}")
    if arguments.folder is not None:
        return _run(arguments, arguments.folder)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        return _run(arguments, Path(folder))


def _run(arguments: argparse.Namespace, folder: Path) -> int:
    home = folder / "home"
    home.mkdir(parents=True)
    try:
        with served(home, folder / "serve.log") as service:
            sampler = Sampler(home, open_database(Settings.load(home).database_url), service.pid)
            return _soak(service.url, folder, sampler, arguments.minutes * 60, random.Random(arguments.seed))  # noqa: S311
    finally:
        stop_hosts(home)


def _soak(url: str, folder: Path, sampler: Sampler, seconds: float, dice: random.Random) -> int:
    record = Record()
    ended = threading.Event()
    loads = workloads(folder)
    drivers = [Driver(PipelineClient(url), load, _dice(dice), record) for load in loads]
    readers = [Reader(PipelineClient(url), loads, _dice(dice), record) for _ in range(READERS)]
    guests = Guests(PipelineClient(url), _dice(dice), record)
    runs = [*(one.run for one in drivers), *(one.run for one in readers), guests.run]
    clients = [threading.Thread(target=run, args=(ended,), daemon=True) for run in runs]
    begin = time.monotonic()
    for client in clients:
        client.start()
    samples = _sampled(sampler, record, begin, seconds)
    end = time.monotonic()
    ended.set()
    for client in clients:
        client.join(max(0.0, end + END_S - time.monotonic()))
        if client.is_alive():
            record.fault(client.name, AssertionError(f"it had not ended after {END_S:.0f} s"))
    found = [*growths(samples), *slowdowns(record.calls(begin, end), begin, end)]
    _report(found, record, end - begin)
    return int(bool(record.faults) or any(growth.keeps_growing for growth in found))


def _sampled(sampler: Sampler, record: Record, begin: float, seconds: float) -> list[Sample]:
    """Take samples until the time is over, or there are too many faults."""
    samples: list[Sample] = []
    wanted = max(FEWEST_SAMPLES, int(seconds / SAMPLE_S))
    while len(samples) < wanted and not record.hopeless:
        time.sleep(max(0.0, begin + seconds * (len(samples) + 1) / wanted - time.monotonic()))
        samples.append(sampler.sample())
        if len(samples) % (wanted // 12) == 0:
            say(f"{time.strftime('%H:%M:%S')} {record.counts}")
            say(f"{time.strftime('%H:%M:%S')} { ({name: round(value, 1) for name, value in samples[-1].figures.items()}) }")
    return samples


def _report(found: Sequence[Growth], record: Record, seconds: float) -> None:
    table = Table("figure", *(f"part {number}" for number in range(1, len(found[0].parts) + 1)), "bound", "")
    for column in table.columns[1:]:
        column.justify = "right"
    for growth in found:
        verdict = "[bold red]keeps growing[/]" if growth.keeps_growing else ""
        table.add_row(growth.name, *(f"{part:.4g}" for part in growth.parts), f"{growth.limit:.4g}", verdict)
    Console(width=None if sys.stdout.isatty() else 150).print(table)
    say(f"{seconds / 60:.0f} minutes: {', '.join(f'{count} x {what}' for what, count in record.counts.items())}")
    for fault in record.faults:
        say(f"WRONG {fault}")


def _dice(dice: random.Random) -> random.Random:
    """Return the dice of one client, so that its choices do not depend on the speed of the others."""
    return random.Random(dice.random())  # noqa: S311


if __name__ == "__main__":
    sys.exit(main())
