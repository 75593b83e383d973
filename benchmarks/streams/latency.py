"""How long one element takes from its source through a function with keys and state to what follows it."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from benchmarks.measure import Measurement, percentile
from benchmarks.streams.systems import HEAP, ours_environment
from tools.flink import Flink, run

TARGET_MS = 50.0
ELEMENTS = 500
PAUSE_S = 0.01


def measure(flink: Flink | None) -> list[Measurement]:
    """Measure the medians and the 95th percentiles, in ms.

    :param flink: the environment of Flink; None leaves it out
    """
    found = _measurements("ours", _milliseconds("ours", Path(sys.executable), ours_environment()))
    median = next(item.value for item in found if item.name.endswith("median"))
    found.append(Measurement("streams_latency_small_ms", median, "ms", TARGET_MS))
    if flink is not None:
        for package in ("flink_thread", "flink_process_at_once"):
            found += _measurements(package, _milliseconds(package, flink.python, dict(flink.environment(HEAP))))
    return found


def _milliseconds(package: str, python: Path, environment: dict[str, str]) -> list[float]:
    options = ["--package", package, "--elements", str(ELEMENTS), "--pause", str(PAUSE_S)]
    answer = run([python, "-m", "benchmarks.streams.latency_job", *options], environment).splitlines()[-1]
    found: list[float] = json.loads(answer)["milliseconds"]
    return found


def _measurements(package: str, times: list[float]) -> list[Measurement]:
    return [
        Measurement(f"streams.latency.{package}.ms_median", statistics.median(times), "ms"),
        Measurement(f"streams.latency.{package}.ms_p95", percentile(times, 0.95), "ms"),
    ]
