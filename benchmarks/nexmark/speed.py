"""Throughput for the Nexmark queries: our engine, Flink SQL and Structured Streaming over the same events, one after the other.

All read the same events from Parquet within the time that is taken, and give their rows to nobody. Each runs each query several
times, one after the other, and the median counts: what a virtual machine compiles in the first run is no part of a long stream.
Before, all queries run over a small stream on ours and on Flink, and both must give as many rows.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from airflow_pipelines.engine.spark.sessions import SparkSessions, build_spark
from benchmarks.measure import Bound, Measurement, geometric_mean
from benchmarks.nexmark.flink import Answer, FlinkSql
from benchmarks.nexmark.flink_queries import NOT_EXPRESSIBLE
from benchmarks.nexmark.ours import by_name, count_rows, run_query
from benchmarks.nexmark.queries import QUERIES, Query
from benchmarks.nexmark.streams import Stream, write_stream
from benchmarks.nexmark.structured import expressible, run_structured
from benchmarks.options import Options
from tools.flink import FlinkUnavailableError

LARGE, SMALL = 1_000_000, 100_000
"""Sizes of batches in events. Ratios are those of the large ones; the small ones see only the first million events."""
CHECKED_EVENTS = 100_000
MEMORY = "8g"
"""Memory of each system's Java process."""

Report = Callable[[str], None]


@dataclass
class Figures:
    """Events per second by query, of each system that ran it."""

    large: dict[str, float] = field(default_factory=dict)
    small: dict[str, float] = field(default_factory=dict)
    flink: dict[str, float] = field(default_factory=dict)
    structured: dict[str, float] = field(default_factory=dict)

    def measurements(self) -> list[Measurement]:
        """The figures by name, and the means over all queries that a pair of systems has in common."""
        systems = {"1e6": self.large, "1e5": self.small, "flink": self.flink, "structured": self.structured}
        found = [
            Measurement(f"nexmark.{system}.{query}.events_per_s", rate, "events/s")
            for system, rates in systems.items()
            for query, rate in rates.items()
        ]
        for system in ("flink", "structured"):
            ratios = {query: self.large[query] / rate for query, rate in systems[system].items() if query in self.large}
            found += [Measurement(f"nexmark.1e6.{query}.vs_{system}", ratio, "x") for query, ratio in ratios.items()]
            if set(ratios) == _common(system):
                target = 1.0 if system == "flink" else None
                found.append(
                    Measurement(f"nexmark_vs_{system}_geomean", geometric_mean(ratios.values()), "x", target, Bound.AT_LEAST)
                )
        return found


def measure(options: Options, report: Report = print) -> list[Measurement]:
    """Measure the chosen queries. Means are given only when every query that both systems can express was measured.

    :raises RuntimeError: when our engine and Flink disagree on the number of rows of an answer
    """
    cores, queries, figures = os.cpu_count() or 1, by_name(options.queries), Figures()
    with tempfile.TemporaryDirectory(prefix="pipelines-nexmark-") as folder:
        checked = write_stream(Path(folder) / "checked", CHECKED_EVENTS, (CHECKED_EVENTS,), cores)
        events = max(options.events // LARGE, 1) * LARGE
        stream = write_stream(Path(folder) / "timed", events, (LARGE, SMALL), cores)
        report(f"{events} events written")
        # Flink runs before our own Java process is there, so that neither takes memory from the other.
        counts = _flink(figures, queries, checked, stream, options, report)
        spark = build_spark("local[*]", "benchmarks", {"spark.driver.memory": MEMORY})
        spark.sparkContext.setLogLevel("ERROR")
        try:
            sessions = SparkSessions.of(spark)
            _check(queries, sessions, checked, counts)
            _ours(figures, queries, sessions, stream, options, report)
            _structured(figures, queries, sessions, stream, options, report)
        finally:
            spark.stop()
    return figures.measurements()


def _flink(
    figures: Figures, queries: tuple[Query, ...], checked: Stream, stream: Stream, options: Options, report: Report
) -> Mapping[str, Answer]:
    """Flink's figures; gives the sizes of its answers over the small stream."""
    try:
        flink = FlinkSql.set_up()
    except FlinkUnavailableError as unavailable:
        report(f"Flink is left out: {unavailable}")
        return {}
    names, cores = [query.name for query in queries], os.cpu_count() or 1
    counts = flink.counts(checked, names, cores, MEMORY)
    for name, answer in flink.times(stream, names, options.runs, cores, MEMORY).items():
        if answer.seconds is None:
            raise RuntimeError(f"Flink failed at {name}: {answer.error}")
        figures.flink[name] = stream.events / answer.seconds
        report(f"{name}: Flink {figures.flink[name]:,.0f} events/s")
    for name in set(names) & set(NOT_EXPRESSIBLE):
        report(f"{name}: not in Flink: {NOT_EXPRESSIBLE[name]}")
    return counts


def _check(queries: tuple[Query, ...], sessions: SparkSessions, checked: Stream, counts: Mapping[str, Answer]) -> None:
    for query in queries:
        if query.name in counts:
            ours, theirs = count_rows(query, sessions, checked, CHECKED_EVENTS), counts[query.name]
            if ours != theirs.rows:
                raise RuntimeError(f"{query.name} gives {ours} rows here and {theirs.rows} in Flink {theirs.error or ''}")


def _ours(
    figures: Figures, queries: tuple[Query, ...], sessions: SparkSessions, stream: Stream, options: Options, report: Report
) -> None:
    run_query(QUERIES[0], sessions, stream, LARGE, LARGE)
    for query in queries:
        if options.out_of_time:
            report(f"{query.name} and what comes after it is left out: the time is up")
            return
        runs = [run_query(query, sessions, stream, LARGE) for _ in range(options.runs)]
        large = sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]
        small = run_query(query, sessions, stream, SMALL, LARGE)
        figures.large[query.name], figures.small[query.name] = large.events_per_s, small.events_per_s
        steps = ", ".join(f"{strategy} {milliseconds / 1000:.1f} s" for strategy, milliseconds in large.operators.items())
        report(f"{query.name}: {large.events_per_s:,.0f} events/s, {small.events_per_s:,.0f} in small batches; {steps}")


def _structured(
    figures: Figures, queries: tuple[Query, ...], sessions: SparkSessions, stream: Stream, options: Options, report: Report
) -> None:
    for query in expressible():
        if query in queries and not options.out_of_time:
            rates = [run_structured(query, sessions, stream, LARGE).events_per_s for _ in range(options.runs)]
            figures.structured[query.name] = median(rates)
            report(f"{query.name}: Structured Streaming {figures.structured[query.name]:,.0f} events/s")


def _common(system: str) -> set[str]:
    """The queries that a system can express; ours can express all."""
    if system == "flink":
        return {query.name for query in QUERIES} - set(NOT_EXPRESSIBLE)
    return {query.name for query in expressible()}
