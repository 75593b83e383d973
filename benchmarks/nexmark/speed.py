"""Throughput for the Nexmark queries: our engine, Flink SQL and Structured Streaming over the same events, one after the other.

All read the same events from Parquet within the time that is taken, and give their rows to nobody. Each runs each query several
times, one after the other, and the median counts: what a virtual machine compiles in the first run is no part of a long stream.
Before, all queries run over a small stream on ours, on Flink and on DuckDB: Flink must give as many rows, DuckDB the same ones.

DuckDB is no stream engine: it computes each query anew over all events so far, which is set against one of our small steps.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from airflow_pipelines.engine.spark.sessions import SparkSessions, build_spark
from benchmarks.answers import difference
from benchmarks.measure import Bound, Measurement, geometric_mean
from benchmarks.nexmark.flink import Answer, FlinkSql
from benchmarks.nexmark.flink_queries import NOT_EXPRESSIBLE
from benchmarks.nexmark.ours import WARM_UP, Run, by_name, final_answer, run_query, step_seconds
from benchmarks.nexmark.queries import QUERIES, Query
from benchmarks.nexmark.recomputing import Recomputed, recompute
from benchmarks.nexmark.recomputing import answers as duckdb_answers
from benchmarks.nexmark.streams import Stream, write_batches, write_stream
from benchmarks.nexmark.structured import expressible, run_structured
from benchmarks.options import Options
from tools.flink import FlinkUnavailableError

NAMES = frozenset(query.name for query in QUERIES)
LARGE, SMALL, TINY = 1_000_000, 100_000, 10_000
"""Sizes of batches in events. The small ones see only the first million events, the tiny ones come after these."""
TINY_STEPS = 20
CHECKED_EVENTS = 100_000
MEMORY = "8g"
"""Memory of each system's Java process."""

Report = Callable[[str], None]


@dataclass
class Figures:
    """Events per second by query, of each system that ran it.

    ``tiny``: seconds of a tiny step. ``profile``: milliseconds of a small step by what they are for.
    """

    large: dict[str, float] = field(default_factory=dict)
    small: dict[str, float] = field(default_factory=dict)
    tiny: dict[str, float] = field(default_factory=dict)
    profile: dict[str, Mapping[str, float]] = field(default_factory=dict)
    flink: dict[str, float] = field(default_factory=dict)
    structured: dict[str, float] = field(default_factory=dict)
    recomputed: Recomputed = field(default_factory=Recomputed)

    def measurements(self, required: Set[str] = NAMES) -> list[Measurement]:
        """Return the figures by name.

        :param required: the queries that must all have been measured, as far as both systems can express them, before means over
            queries are given
        """
        systems = {"1e6": self.large, "1e5": self.small, "flink": self.flink, "structured": self.structured}
        found = [
            Measurement(f"nexmark.{system}.{query}.events_per_s", rate, "events/s")
            for system, rates in systems.items()
            for query, rate in rates.items()
        ]
        found += [Measurement(f"nexmark.1e4.{query}.step_s", seconds, "s") for query, seconds in self.tiny.items()]
        found += [
            Measurement(f"nexmark.profile.{query}.{part.replace(' ', '_')}_ms", milliseconds, "ms")
            for query, profile in self.profile.items()
            for part, milliseconds in profile.items()
        ]
        found += self._against_flink(required) + self._against_structured(required)
        if self.tiny and required <= self.tiny.keys():
            found.append(Measurement("nexmark_step_1e4_s_max", max(self.tiny.values()), "s", 0.15))
        steps = {"1e4": self.tiny, "1e5": {query: SMALL / rate for query, rate in self.small.items()}}
        return found + self.recomputed.measurements(steps, required)

    def _against_flink(self, required: Set[str]) -> list[Measurement]:
        large, small = _ratios(self.large, self.flink), _ratios(self.small, self.flink)
        found = [Measurement(f"nexmark.1e6.{query}.vs_flink", ratio, "x") for query, ratio in large.items()]
        found += [Measurement(f"nexmark.1e5.{query}.vs_flink", ratio, "x") for query, ratio in small.items()]
        if large and required - NOT_EXPRESSIBLE.keys() <= large.keys():
            found += [
                _at_least("nexmark_vs_flink_geomean", geometric_mean(large.values()), 2.0),
                _at_least("nexmark_vs_flink_min", min(large.values()), 0.8),
                _at_least("nexmark_vs_flink_geomean_1e5", geometric_mean(small.values()), 1.0),
            ]
        return found

    def _against_structured(self, required: Set[str]) -> list[Measurement]:
        ratios = _ratios(self.large, self.structured)
        found = [Measurement(f"nexmark.1e6.{query}.vs_structured", ratio, "x") for query, ratio in ratios.items()]
        if ratios and required & {query.name for query in expressible()} <= ratios.keys():
            found.append(Measurement("nexmark_vs_structured_geomean", geometric_mean(ratios.values()), "x"))
        return found


def _ratios(ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float]:
    return {query: ours[query] / rate for query, rate in theirs.items() if query in ours}


def _at_least(name: str, value: float, target: float) -> Measurement:
    return Measurement(name, value, "x", target, Bound.AT_LEAST)


def measure(options: Options, report: Report = print) -> list[Measurement]:
    """Measure the chosen queries.

    :raises RuntimeError: when our engine and Flink or DuckDB disagree on an answer
    """
    cores, queries, figures = os.cpu_count() or 1, by_name(options.queries), Figures()
    with tempfile.TemporaryDirectory(prefix="pipelines-nexmark-") as folder:
        checked = write_stream(Path(folder) / "checked", CHECKED_EVENTS, (CHECKED_EVENTS,), cores)
        events = max(options.events // LARGE, 1) * LARGE
        stream = write_stream(Path(folder) / "timed", events, (LARGE, SMALL), cores)
        report(f"{events} events written")
        # Flink runs before our own Java process is there, so that neither takes memory from the other.
        counts = _flink(figures, queries, checked, stream, options, report)
        recomputed = duckdb_answers(queries, checked, CHECKED_EVENTS)
        spark = build_spark("local[*]", "benchmarks", {"spark.driver.memory": MEMORY})
        spark.sparkContext.setLogLevel("ERROR")
        try:
            sessions = SparkSessions.of(spark)
            _check(queries, sessions, checked, counts, recomputed)
            _ours(figures, queries, sessions, stream, options, report)
            _structured(figures, queries, sessions, stream, options, report)
        finally:
            spark.stop()
        figures.recomputed = recompute(queries, stream, SMALL, sorted({SMALL, LARGE, events}), options.runs, report)
    return figures.measurements(options.required(NAMES))


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


def _check(
    queries: tuple[Query, ...],
    sessions: SparkSessions,
    checked: Stream,
    counts: Mapping[str, Answer],
    recomputed: Mapping[str, Any],
) -> None:
    for query in queries:
        ours = final_answer(query, sessions, checked, CHECKED_EVENTS)
        if query.name in counts and ours.num_rows != counts[query.name].rows:
            theirs = counts[query.name]
            raise RuntimeError(f"{query.name} gives {ours.num_rows} rows here and {theirs.rows} in Flink {theirs.error or ''}")
        if different := difference(ours, recomputed[query.name]):
            raise RuntimeError(f"{query.name} has another answer here than in DuckDB: {different}")


def _ours(
    figures: Figures, queries: tuple[Query, ...], sessions: SparkSessions, stream: Stream, options: Options, report: Report
) -> None:
    first = LARGE // TINY
    tiny = write_batches(stream, TINY, range(first, first + WARM_UP + TINY_STEPS))
    run_query(QUERIES[0], sessions, stream, LARGE, LARGE)
    for query in queries:
        if options.out_of_time:
            report(f"{query.name} and what comes after it is left out: the time is up")
            return
        large = _middle([run_query(query, sessions, stream, LARGE) for _ in range(options.runs)])
        small = _middle([run_query(query, sessions, stream, SMALL, LARGE) for _ in range(options.runs)])
        step_s = step_seconds(query, sessions, stream.side_input(), [stream.batch(LARGE, 0)], tiny)
        figures.large[query.name], figures.small[query.name] = large.events_per_s, small.events_per_s
        figures.tiny[query.name] = step_s
        figures.profile[query.name] = small.profile(LARGE // SMALL)
        steps = ", ".join(f"{strategy} {milliseconds / 1000:.1f} s" for strategy, milliseconds in large.operators.items())
        rates = f"{large.events_per_s:,.0f} events/s, {small.events_per_s:,.0f} in small batches"
        report(f"{query.name}: {rates}, a tiny step {step_s:.3f} s; {steps}")


def _middle(runs: list[Run]) -> Run:
    return sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]


def _structured(
    figures: Figures, queries: tuple[Query, ...], sessions: SparkSessions, stream: Stream, options: Options, report: Report
) -> None:
    for query in expressible():
        if query in queries and not options.out_of_time:
            rates = [run_structured(query, sessions, stream, LARGE).events_per_s for _ in range(options.runs)]
            figures.structured[query.name] = median(rates)
            report(f"{query.name}: Structured Streaming {figures.structured[query.name]:,.0f} events/s")
