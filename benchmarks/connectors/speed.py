"""All that is measured of connectors, one system after the other."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from benchmarks.connectors import delta, files, json, kafka, postgres
from benchmarks.measure import Incomplete, Measurement
from benchmarks.options import Options

SYSTEMS: Final[Mapping[str, Callable[[Options], list[Measurement]]]] = {
    "kafka": kafka.measure,
    "json": json.measure,
    "files": files.measure,
    "postgres": postgres.measure,
    "delta": delta.measure,
}
"""By name what measures a system."""
_REPEATS: Final = 3
"""Each takes some minutes, so that nothing is taken more often than this."""


def measure(options: Options) -> list[Measurement]:
    """Measure what is chosen by the names of :data:`SYSTEMS`; all by default.

    :param options: which, and how often each figure is taken
    :raises Incomplete: when one of them cannot be measured here; it has the figures of the others
    """
    chosen = options.queries or tuple(SYSTEMS)
    few = replace(options, repeats=min(options.repeats, _REPEATS))
    found: list[Measurement] = []
    failures = [f"{name}: there is no such system; there are {', '.join(SYSTEMS)}" for name in chosen if name not in SYSTEMS]
    for name in chosen:
        if name in SYSTEMS:
            try:
                found += SYSTEMS[name](few)
            except Exception:  # noqa: BLE001 - the others can still be measured
                failures.append(f"{name}: {traceback.format_exc()}")
    if failures:
        raise Incomplete(found, failures)
    return found
