"""Where the time of the keyed workload goes: the share of each part of the core.

The profiler costs something for each call, so the shares of parts with many small calls are somewhat too large.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Iterable
from typing import Any

from benchmarks.measure import Measurement

ELEMENTS = 200_000
PARTS = (
    ("benchmarks/streams/workloads.py", "the program's own functions"),
    ("streams/operators/source.py", "source"),
    ("datastream/connectors/", "source"),
    ("streams/state/", "state"),
    ("streams/operators/collector.py", "results of functions"),
    ("streams/operators/", "calls of functions"),
    ("streams/exchanges.py", "exchange by key"),
    ("streams/keys.py", "exchange by key"),
    ("datastream/common/", "declared types"),
    ("streams/loop.py", "declared types"),
)
"""What the path of a file has in it, and the part that it belongs to; the first that fits. ``loop.py`` applies the types."""
REST = "the rest"

Function = tuple[str, int, str]
"""File, line and name, as the profiler has them; what is built in has the file ``~``."""


def measure() -> list[Measurement]:
    """Measure the share of each part, largest first."""
    # Not at the top: it imports the package that is measured.
    from benchmarks.streams.job import Job

    job = Job("ours", "keyed_1000")
    job.seconds(1_000)
    profiler = cProfile.Profile()
    profiler.enable()
    job.seconds(ELEMENTS)
    profiler.disable()
    stats: dict[Function, Any] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    times = ((function, entry[2], {caller: each[2] for caller, each in entry[4].items()}) for function, entry in stats.items())
    return [Measurement(f"streams.profile.{part}", share, "x") for part, share in shares(times).items()]


def shares(times: Iterable[tuple[Function, float, dict[Function, float]]]) -> dict[str, float]:
    """Compute the share of each part.

    :param times: each function with its own seconds, and these by the functions that called it; the seconds of a built-in function
        belong to its callers
    :returns: the shares of 1, largest first
    """
    seconds: dict[str, float] = {}
    for function, own, callers in times:
        for owner, spent in callers.items() if function[0] == "~" else [(function, own)]:
            part = _part(owner[0])
            seconds[part] = seconds.get(part, 0.0) + spent
    total = sum(seconds.values())
    return {part: spent / total for part, spent in sorted(seconds.items(), key=lambda entry: -entry[1])}


def _part(file: str) -> str:
    path = file.replace("\\", "/")
    return next((part for piece, part in PARTS if piece in path), REST)
