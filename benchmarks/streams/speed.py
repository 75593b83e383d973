"""Elements per second of stream programs: ours as a script, PyFlink in its two modes, and Quix Streams, one after the other.

Before anything is timed each program runs over few elements here and in PyFlink, and the results must be the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.measure import Bound, Incomplete, Measurement, geometric_mean
from benchmarks.options import Options
from benchmarks.streams import deployed, growth, latency, profile
from benchmarks.streams.quix import Quix
from benchmarks.streams.systems import System, flinks, ours
from benchmarks.streams.workloads import WORKLOADS, Workload
from tools.flink import Flink, FlinkUnavailableError

KEYED = ("keyed_1000", "keyed_20000")
RATIOS = {"keyed": (KEYED, 10.0), "window": (("window",), 10.0), "map": (("map",), 8.0)}
"""Names of ratios to Flink's thread mode: over which workloads, and what they are to be at least."""
KEYED_ROWS_PER_S = 200_000.0

Rates = dict[tuple[str, str], float]
"""Elements per second by name of the system and of the workload."""


def measure(options: Options) -> list[Measurement]:
    """Measure what is chosen: workloads by their names, ``deployed``, ``latency``, ``growth`` and ``profile``; all by default."""
    parts = options.queries or (*WORKLOADS, "deployed", "latency", "profile", "growth")
    failures: list[str] = []
    flink = _flink(failures)
    workloads = [WORKLOADS[name] for name in parts if name in WORKLOADS]
    rates = _rates(workloads, _systems(flink, failures), options.repeats, failures)
    found = measurements(rates)
    if "deployed" in parts:
        found += deployed.measure(list(WORKLOADS.values()), options.repeats)
    if "latency" in parts:
        found += latency.measure(flink)
    if "profile" in parts:
        found += profile.measure()
    if "growth" in parts:
        found += growth.measure(options)
    if failures:
        raise Incomplete(found, failures)
    return found


def _flink(failures: list[str]) -> Flink | None:
    try:
        return Flink.set_up()
    except FlinkUnavailableError as unavailable:
        failures.append(f"Flink is left out: {unavailable}")
        return None


def _systems(flink: Flink | None, failures: list[str]) -> list[System]:
    systems: list[System] = [ours(), *(() if flink is None else flinks(flink))]
    try:
        systems.append(Quix.set_up())
    except FlinkUnavailableError as unavailable:
        failures.append(f"Quix Streams is left out: {unavailable}")
    return systems


def _rates(workloads: Sequence[Workload], systems: Sequence[System], repeats: int, failures: list[str]) -> Rates:
    found: Rates = {}
    for workload in workloads:
        able = [system for system in systems if workload.name in KEYED or system.name != "quix"]
        try:
            _require_the_same(workload, able)
            for system in able:
                rate = found[(system.name, workload.name)] = system.rate(workload, repeats)
                print(f"  {workload.name}, {system.name}: {rate:,.0f} elements/s", flush=True)
        except (FlinkUnavailableError, ValueError) as error:
            failures.append(f"{workload.name}: {error}")
    return found


def _require_the_same(workload: Workload, systems: Sequence[System]) -> None:
    """Compare the results of few elements.

    :raises ValueError: when two systems differ
    """
    results = {system.name: found for system in systems if (found := system.results(workload)) is not None}
    first = next(iter(results.values()))
    different = [name for name, found in results.items() if found != first]
    if different:
        raise ValueError(f"{different} and {next(iter(results))} give different results")


def measurements(rates: Mapping[tuple[str, str], float]) -> list[Measurement]:
    """Return the rates, and the figures of the summary that follow from them.

    :param rates: the rates that were measured, by system and workload
    """
    found = [Measurement(f"streams.{workload}.{system}.elements_per_s", rate, "1/s") for (system, workload), rate in rates.items()]
    for name, (workloads, target) in RATIOS.items():
        pairs = [(rates.get(("ours", each)), rates.get(("flink_thread", each))) for each in workloads]
        quotients = [ours / theirs for ours, theirs in pairs if ours and theirs]
        if len(quotients) == len(workloads):
            ratio = geometric_mean(quotients)
            found.append(Measurement(f"streams_{name}_vs_flink_thread", ratio, "x", target, Bound.AT_LEAST))
    keyed = [rates[("ours", each)] for each in KEYED if ("ours", each) in rates]
    if len(keyed) == len(KEYED):
        found.append(Measurement("streams_keyed_rows_per_s", min(keyed), "1/s", KEYED_ROWS_PER_S, Bound.AT_LEAST))
    return found
