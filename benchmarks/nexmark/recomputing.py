"""Nexmark on DuckDB: each query computed anew over all events so far, against a step of our engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.duckdb_peer import DuckDb, even_at
from benchmarks.measure import Measurement, geometric_mean
from benchmarks.nexmark.duckdb_queries import in_duckdb
from benchmarks.nexmark.queries import Query
from benchmarks.nexmark.streams import Stream

Report = Callable[[str], None]


@dataclass
class Recomputed:
    """Seconds of DuckDB for each query, by the number of events that there are."""

    seconds: dict[str, dict[int, float]] = field(default_factory=dict)

    def measurements(self, steps: Mapping[str, Mapping[str, float]], required: Set[str]) -> list[Measurement]:
        """Return the figures by name, next to our steps.

        :param steps: the seconds of a step of our engine by query, by the size of the step as it is written in names
        :param required: the queries that must all have been measured for means to be given
        """
        found = [
            Measurement(f"nexmark.duckdb.{query}.at_{events}_s", taken, "s")
            for query, by_events in self.seconds.items()
            for events, taken in by_events.items()
        ]
        for size, step_s in steps.items():
            both = {query: times for query, times in self.seconds.items() if query in step_s}
            even = {query: even_at(times, dict.fromkeys(times, step_s[query])) for query, times in both.items()}
            found += [
                Measurement(f"nexmark.duckdb.{query}.even_at_{size}", events, "events")
                for query, events in even.items()
                if events is not None
            ]
            if both and required <= both.keys():
                found += _means(size, step_s, both)
                middle = median(math.inf if events is None else events for events in even.values())
                if math.isfinite(middle):
                    found.append(Measurement(f"nexmark_step_{size}_vs_duckdb_even_at_median", middle, "events"))
        return found


def _means(size: str, step_s: Mapping[str, float], seconds: Mapping[str, Mapping[int, float]]) -> list[Measurement]:
    return [
        Measurement(
            f"nexmark_step_{size}_vs_duckdb_geomean_at_{events}",
            geometric_mean(step_s[query] / times[events] for query, times in seconds.items()),
            "x",
        )
        for events in next(iter(seconds.values()))
    ]


def answers(queries: Sequence[Query], stream: Stream, size: int) -> dict[str, Any]:
    """Each query's answer over a whole stream, as an Arrow table.

    :param queries: the queries
    :param stream: its events
    :param size: events in each of its batches
    """
    with DuckDb.open() as database:
        _load(database, stream, size, stream.events)
        return {query.name: database.answer(in_duckdb(query)) for query in queries}


def recompute(queries: Sequence[Query], stream: Stream, size: int, sizes: Sequence[int], runs: int, report: Report) -> Recomputed:
    """Measure queries over the first events of a stream.

    :param queries: the queries
    :param stream: its events
    :param size: events in each of its batches
    :param sizes: how many events there are
    :param runs: how often each query runs, for the median
    :param report: gets a line for each query and size
    """
    found = Recomputed()
    for events in sizes:
        with DuckDb.open() as database:
            _load(database, stream, size, events)
            for query in queries:
                taken = database.seconds(in_duckdb(query), runs)
                found.seconds.setdefault(query.name, {})[events] = taken
                report(f"{query.name}: DuckDB recomputes {events} events in {taken:.3f} s")
    return found


def _load(database: DuckDb, stream: Stream, size: int, events: int) -> None:
    for table in ("person", "auction", "bid"):
        database.load(table, [batch / f"{table}.parquet" for batch in stream.batches(size, events)])
    database.load("side_input", [stream.side_input()])
