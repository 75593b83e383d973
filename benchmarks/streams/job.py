"""Runs one workload in one package; the benchmark starts it in the environment that has that package.

It prints one line of JSON: the seconds of each run, without what a run over one element takes (planning, starting and ending), or
with ``--check`` the sorted results.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from benchmarks.streams.packages import PACKAGES
from benchmarks.streams.workloads import WORKLOADS


def main() -> int:
    """Run it, after a run that warms the process up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", choices=PACKAGES, required=True)
    parser.add_argument("--workload", choices=WORKLOADS, required=True)
    parser.add_argument("--elements", type=int, required=True)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--check", action="store_true", help="collect the results instead of timing")
    arguments = parser.parse_args()
    job = Job(arguments.package, arguments.workload)
    if arguments.check:
        print(json.dumps({"results": job.results(arguments.elements)}), flush=True)
        return 0
    job.seconds(min(arguments.elements, 1_000))
    one = min(job.seconds(1) for _ in range(2))
    print(json.dumps({"seconds": [job.seconds(arguments.elements) - one for _ in range(arguments.repeats)]}), flush=True)
    return 0


class Job:
    """One workload in one package."""

    def __init__(self, package: str, workload: str) -> None:
        self._package = PACKAGES[package]()
        self._workload = WORKLOADS[workload]

    def seconds(self, elements: int) -> float:
        """How long a run over so many numbers takes; its results are thrown away."""
        env, stream = self._stream(elements)
        stream.sink_to(self._package.discard())
        start = time.perf_counter()
        env.execute()
        return time.perf_counter() - start

    def results(self, elements: int) -> list[Any]:
        """Return the sorted results of a run."""
        _, stream = self._stream(elements)
        with stream.execute_and_collect() as found:
            return sorted(found)

    def _stream(self, elements: int) -> tuple[Any, Any]:
        api, env = self._package.api, self._package.environment()
        source = api.NumberSequenceSource(0, elements - 1)
        numbers = env.from_source(source, api.WatermarkStrategy.no_watermarks(), "numbers", api.Types.LONG())
        if self._workload.in_order:
            numbers.set_parallelism(1)
        return env, self._workload.build(api, numbers, self._workload.keys)


if __name__ == "__main__":
    sys.exit(main())
