"""Each TPC-H query as a program of its own: its first load and its steps, against Spark and DuckDB computing the query."""

from __future__ import annotations

import math
import tempfile
import traceback
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.spark.jobs import started_jobs
from airflow_pipelines.engine.spark.sessions import build_spark
from benchmarks.answers import difference
from benchmarks.duckdb_peer import DuckDb, even_at
from benchmarks.measure import Bound, Incomplete, Measurement, geometric_mean, median_seconds, timed
from benchmarks.options import Options
from benchmarks.tpch.generator import Generator
from benchmarks.tpch.prepared import Prepared
from benchmarks.tpch.queries import NAMES, program, queries, tables_of
from benchmarks.tpch.refresh import Refresh
from benchmarks.tpch.scale import Scale

CHANGED_ROWS = 1_000
RECOMPUTATIONS = 3
LOADS = 3
DRIVER_MEMORY = "8g"
LINEAR = frozenset({"linear", "join", "union", "accumulators"})
"""Strategies whose cost should follow the size of the change alone."""
GEOMEAN_TARGETS = {1_000_000: 0.3, 10_000_000: 0.1}
"""Bounds for the mean ratio of a step to recomputing, by lineitems."""


@dataclass(frozen=True)
class QueryFigures:
    """What was measured of one query at one size; seconds are medians.

    ``first_s``: the view's first contents from the loaded tables. ``batch_s``: Spark running the query once and writing the result.
    ``step_s``: a step with :data:`CHANGED_ROWS` changed rows, publishing included. ``views_s``: the part of it that evaluated the
    view's plan; the rest found the rows that the changes replace. ``upkeep_s``: merging after a step, done in idle time.
    ``recompute_s``: Spark running the query again. ``duckdb_s``: DuckDB doing so over tables in its memory. ``jobs``: Spark jobs of
    a step.
    """

    query: str
    rows: int
    first_s: float
    batch_s: float
    step_s: float
    views_s: float
    upkeep_s: float
    recompute_s: float
    duckdb_s: float
    jobs: float
    strategies: tuple[str, ...]

    @property
    def is_linear(self) -> bool:
        """Whether only linear rules are at work."""
        return set(self.strategies) <= LINEAR

    def measurements(self) -> list[Measurement]:
        """Return the figures by name."""
        prefix = f"tpch.{size(self.rows)}.{self.query}"
        seconds = {
            "first_s": self.first_s,
            "batch_s": self.batch_s,
            "step_s": self.step_s,
            "step_views_s": self.views_s,
            "upkeep_s": self.upkeep_s,
            "recompute_s": self.recompute_s,
            "duckdb_s": self.duckdb_s,
        }
        return [
            *(Measurement(f"{prefix}.{name}", value, "s") for name, value in seconds.items()),
            Measurement(f"{prefix}.jobs", self.jobs, "jobs"),
            Measurement(f"{prefix}.linear", float(self.is_linear), ""),
            Measurement(f"{prefix}.step_vs_recompute", self.step_s / self.recompute_s, "x"),
            Measurement(f"{prefix}.step_vs_duckdb", self.step_s / self.duckdb_s, "x"),
        ]


def size(rows: int) -> str:
    """Format a number of rows as it is written in names: 1e6 for a million."""
    mantissa, exponent = f"{rows:e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def measure(options: Options, report: Callable[[str], None] = print) -> list[Measurement]:
    """Measure the chosen queries at the chosen sizes. Means are given only for sizes at which every query was measured.

    :raises Incomplete: when queries failed, or gave something else than Spark does; with the figures of the others
    """
    found: list[QueryFigures] = []
    failures: list[str] = []
    measurements: list[Measurement] = []
    for rows in options.rows:
        spark = build_spark("local[*]", "benchmarks", {"spark.driver.memory": DRIVER_MEMORY})
        spark.sparkContext.setLogLevel("ERROR")
        try:
            with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as folder, DuckDb.open() as database:
                names = options.queries or NAMES
                tables = {table for name in names for table in tables_of(queries(Scale(rows))[name])}
                prepared = Prepared.load(Generator(Scale(rows)), spark, Path(folder), tables)
                measurements.append(Measurement(f"tpch.{size(rows)}.load_tables_s", prepared.load_s, "s"))
                report(f"{size(rows)} lineitems: tables loaded in {prepared.load_s:.1f} s")
                for table in sorted(tables):
                    database.load(table, sorted((Path(folder) / "parquet" / table).glob("*.parquet")))
                for figures in _queries(prepared, database, rows, options):
                    if isinstance(figures, QueryFigures):
                        found.append(figures)
                        report(_line(figures))
                    else:
                        failures.append(figures)
                        report(figures)
        finally:
            spark.stop()
    measurements += [item for figures in found for item in figures.measurements()]
    measurements += summary(found, options.required(NAMES))
    if failures:
        raise Incomplete(measurements, failures)
    return measurements


def summary(found: list[QueryFigures], required: Set[str] = frozenset(NAMES)) -> list[Measurement]:
    """Return the means over queries, for each size at which all required queries were measured."""
    by_size = {rows: [one for one in found if one.rows == rows] for rows in sorted({one.rows for one in found})}
    whole = {rows: figures for rows, figures in by_size.items() if {one.query for one in figures} >= required}
    means = [
        Measurement(
            f"tpch_step_vs_recompute_geomean_{size(rows)}",
            geometric_mean(one.step_s / one.recompute_s for one in figures),
            "x",
            GEOMEAN_TARGETS.get(rows),
        )
        for rows, figures in whole.items()
    ]
    for rows, figures in whole.items():
        ratios = [one.step_s / one.duckdb_s for one in figures]
        means += [
            Measurement(f"tpch_step_vs_duckdb_geomean_{size(rows)}", geometric_mean(ratios), "x"),
            Measurement(f"tpch_step_below_duckdb_{size(rows)}", float(sum(ratio < 1 for ratio in ratios)), "queries"),
        ]
    if set(whole) >= set(GEOMEAN_TARGETS):
        everything = [one for figures in whole.values() for one in figures]
        means += [
            Measurement("tpch_step_vs_recompute_max", max(one.step_s / one.recompute_s for one in everything), "x", 1.0),
            Measurement(
                "tpch_load_vs_batch_geomean",
                geometric_mean(one.batch_s / one.first_s for one in everything),
                "x",
                0.9,
                Bound.AT_LEAST,
            ),
            *_growth(*(whole[rows] for rows in sorted(GEOMEAN_TARGETS))),
            *_even(everything),
        ]
    return means


def _even(figures: list[QueryFigures]) -> list[Measurement]:
    """From how many lineitems on a step is cheaper than DuckDB computing the query again."""
    found = []
    for name in NAMES:
        of_query = [one for one in figures if one.query == name]
        found.append(even_at({one.rows: one.duckdb_s for one in of_query}, {one.rows: one.step_s for one in of_query}))
    measurements = [
        Measurement(f"tpch_even.{name}.lineitems", rows, "lineitems")
        for name, rows in zip(NAMES, found, strict=True)
        if rows is not None
    ]
    middle = median(math.inf if rows is None else rows for rows in found)
    if math.isfinite(middle):
        measurements.append(Measurement("tpch_step_vs_duckdb_even_at_median", middle, "lineitems"))
    return measurements


def _growth(smaller: list[QueryFigures], larger: list[QueryFigures]) -> list[Measurement]:
    before = {one.query: one.step_s for one in smaller}
    growth = {one.query: one.step_s / before[one.query] for one in larger}
    linear = [growth[one.query] for one in larger if one.is_linear]
    found = [Measurement("tpch_step_growth_geomean", geometric_mean(growth.values()), "x")]
    if linear:
        found.append(Measurement("tpch_step_growth_linear_max", max(linear), "x", 2.0))
    return found


def _queries(prepared: Prepared, database: DuckDb, rows: int, options: Options) -> Iterator[QueryFigures | str]:
    """Yield the figures of each query, or the text of its error, which must not cost an hour of other figures."""
    names = options.queries or NAMES
    # The first query of a fresh JVM would pay for what all of them use.
    prepared.query(names[0]).write.format("noop").mode("overwrite").save()
    for name in names:
        if options.out_of_time:
            return
        try:
            yield _measured(prepared, database, name, rows, options.repeats)
        except Exception:  # noqa: BLE001
            yield f"{size(rows)} {name} failed:\n{traceback.format_exc()}"


def _measured(prepared: Prepared, database: DuckDb, name: str, rows: int, repeats: int) -> QueryFigures:
    views = queries(prepared.generator.scale)
    spark, tables = prepared.batch, tables_of(views[name])
    compiled = compile_program(program(views, [name]), prepared.sessions)
    loads: list[float] = []
    batches: list[float] = []
    for load in range(LOADS):
        batches.append(_batch(prepared, name))
        circuit = Circuit(compiled, prepared.sessions, prepared.store)
        circuit.restore(prepared.tables(tables))
        with timed() as first:
            circuit.publish(circuit.bootstrap({name}))
        loads.append(first.seconds)
        if load < LOADS - 1:
            circuit.close()
    circuit.maintain()
    recompute_s = median_seconds(lambda _: _run(prepared, name), RECOMPUTATIONS)
    duckdb_s = _recomputed_in_duckdb(prepared, database, name)
    steps = _Steps(circuit, Refresh(prepared.generator, frozenset(tables)), spark)
    # The first step makes Spark compile what the next ones use again.
    steps.take()
    taken = [steps.take() for _ in range(repeats)]
    _check(circuit, compiled.plans[name].query, name, tables, spark)
    circuit.close()
    return QueryFigures(
        query=name,
        rows=rows,
        first_s=median(loads),
        batch_s=median(batches),
        step_s=_median(taken, "step_s"),
        views_s=_median(taken, "views_s"),
        upkeep_s=_median(taken, "upkeep_s"),
        recompute_s=recompute_s,
        duckdb_s=duckdb_s,
        jobs=_median(taken, "jobs"),
        strategies=tuple(stage.strategy for stage in compiled.plans[name].stages),
    )


def _batch(prepared: Prepared, name: str) -> float:
    """Return the seconds in which Spark runs a query and writes its result."""
    with tempfile.TemporaryDirectory(prefix="pipelines-bench-") as folder, timed() as watch:
        prepared.query(name).write.parquet(f"{folder}/result")
    return watch.seconds


def _run(prepared: Prepared, name: str) -> None:
    """Compute a query to its last row and throw the result away, which is the least that recomputing can cost."""
    prepared.query(name).write.format("noop").mode("overwrite").save()


def _recomputed_in_duckdb(prepared: Prepared, database: DuckDb, name: str) -> float:
    """Return the seconds in which DuckDB computes a query over the loaded tables.

    :raises AssertionError: if its answer is not Spark's
    """
    query = queries(prepared.generator.scale)[name]
    if different := difference(prepared.query(name).toArrow(), database.answer(query)):
        raise AssertionError(f"{name} has another answer in DuckDB than in Spark: {different}")
    return database.seconds(query, RECOMPUTATIONS)


@dataclass(frozen=True)
class _Taken:
    step_s: float
    views_s: float
    upkeep_s: float
    jobs: float


@dataclass
class _Steps:
    """Takes steps and times them."""

    circuit: Circuit
    refresh: Refresh
    spark: SparkSession

    def take(self) -> _Taken:
        changes = self.refresh.changes(CHANGED_ROWS)
        before = self._jobs()
        with timed() as whole:
            step = self.circuit.step(changes)
            self.circuit.publish(step)
        jobs = self._jobs() - before
        with timed() as upkeep:
            self.circuit.maintain()
        views_s = sum(operator.duration_ms for operator in step.stats.operators) / 1_000
        return _Taken(whole.seconds, views_s, upkeep.seconds, float(jobs))

    def _jobs(self) -> int:
        return started_jobs(self.spark.sparkContext)


def _median(taken: list[_Taken], name: str) -> float:
    values = sorted(getattr(one, name) for one in taken)
    return float(values[len(values) // 2])


def _check(circuit: Circuit, query: str, name: str, tables: tuple[str, ...], spark: SparkSession) -> None:
    """Compare the view with the query's answer over the changed tables: a fast wrong answer is worth nothing."""
    session = spark.newSession()
    for setting in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive"):
        session.conf.set(setting, str(spark.conf.get(setting)))
    for table in tables:
        session.sql(circuit.contents(table, circuit.snapshot)).createOrReplaceTempView(table)
    expected, stored = _sorted(session.sql(query).toArrow()), _sorted(circuit.relation(name).toArrow())
    if not expected.equals(stored):
        raise AssertionError(
            f"{name} is not what Spark computes over the same tables: {stored.num_rows} and {expected.num_rows} rows"
        )


def _sorted(table: Any) -> Any:
    """Return the rows in a fixed order, with numbers as column names, so that tables can be compared."""
    table = pa.table([column.combine_chunks() for column in table.columns], names=[str(at) for at in range(table.num_columns)])
    return table.sort_by([(column, "ascending") for column in table.column_names])


def _line(figures: QueryFigures) -> str:
    step = f"step {figures.step_s:6.3f} s (view {figures.views_s:6.3f}, {figures.jobs:g} jobs, upkeep {figures.upkeep_s:5.2f})"
    again = f"recompute {figures.recompute_s:6.3f} s, ratio {figures.step_s / figures.recompute_s:5.2f}"
    again += f", DuckDB {figures.duckdb_s:6.3f} s, ratio {figures.step_s / figures.duckdb_s:5.2f}"
    first = f"first {figures.first_s:6.2f} s, batch {figures.batch_s:6.2f} s"
    return f"{size(figures.rows)} {figures.query:>3}: {step}, {again}; {first}; {', '.join(figures.strategies)}"
