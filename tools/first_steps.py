"""A stress test: the first step of a healthy pipeline with many views, repeated over fresh sessions and a fresh circuit.

The threads of all views then plan their first queries at the same time, which reveals state that they must not share. Run it while
the machine is busy: ``python -m tools.first_steps --rounds 1000 --burners 4``. The first failed round ends it with its error.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import SparkSession

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.spark.sessions import SparkSessions, build_spark
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.rows.changes import OP, Op, TableChanges

QUERIES = (
    "SELECT k, v + {n} AS x FROM t WHERE v > {n}",
    "SELECT k, SUM(v) + {n} AS x FROM t GROUP BY k",
    "SELECT t.k, u.w + {n} AS x FROM t JOIN u ON t.k = u.k",
)
"""The queries of the views, in turn; ``n`` is a view's number."""
KEYS = range(5)
ROWS = [(k, v) for k in KEYS for v in range(10, 40, 10)]
"""The rows of ``t``; ``u`` has one for each even key."""


def program(views: int) -> str:
    """Return a program with a number of independent views."""
    tables = "CREATE TABLE t (k INT, v INT); CREATE TABLE u (k INT, w INT);"
    queries = (f"CREATE VIEW v{n} AS {QUERIES[n % len(QUERIES)].format(n=n)};" for n in range(views))
    return "\n".join([tables, *queries])


def expected(n: int) -> Counter[tuple[int, int]]:
    """Return the rows of view number ``n``."""
    others = {k: k * 100 for k in KEYS if k % 2 == 0}
    match n % len(QUERIES):
        case 0:
            return Counter((k, v + n) for k, v in ROWS if v > n)
        case 1:
            return Counter((k, sum(v for other, v in ROWS if other == k) + n) for k in KEYS)
        case _:
            return Counter((k, others[k] + n) for k, _ in ROWS if k in others)


def first_step(spark: SparkSession, compiled: Program) -> None:
    """Run the first step over fresh sessions.

    :raises AssertionError: when a view is wrong, or a session's settings have changed
    """
    sessions = SparkSessions.of(spark)
    before = dict(sessions.small.conf.getAll)
    with tempfile.TemporaryDirectory(prefix="first-steps-") as folder:
        circuit = Circuit(compiled, sessions, BatchStore(folder))
        step = circuit.step(
            [_inserts("t", ("k", "v"), ROWS), _inserts("u", ("k", "w"), [(k, k * 100) for k in KEYS if k % 2 == 0])]
        )
        for n in range(len(compiled.views)):
            delta = step.view_deltas.get(f"v{n}")
            rows = Counter() if delta is None else Counter((row["k"], row["x"]) for row in delta.to_arrow().to_pylist())
            wanted = expected(n)
            if rows != wanted:
                raise AssertionError(f"view v{n} has {sorted(rows.elements())}, not {sorted(wanted.elements())}")
        circuit.close()
    after = dict(sessions.small.conf.getAll)
    if after != before:
        raise AssertionError(f"settings have changed: {sorted(set(after.items()) ^ set(before.items()))}")


def _inserts(table: str, columns: Sequence[str], rows: Sequence[tuple[int, int]]) -> TableChanges:
    data = {name: pa.array([row[at] for row in rows], pa.int32()) for at, name in enumerate(columns)}
    return TableChanges(table, pa.table({**data, OP: pa.array([int(Op.INSERT)] * len(rows), pa.int8())}))


@contextmanager
def load(burners: int) -> Iterator[None]:
    """Keep a number of cores busy with other processes."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(burners)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run(spark: SparkSession, rounds: int, views: int) -> Iterator[float]:
    """Yield the seconds of each first step."""
    compiled = compile_program(program(views), SparkSessions.of(spark))
    for _ in range(rounds):
        started = time.monotonic()
        first_step(spark, compiled)
        yield time.monotonic() - started


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000, help="first steps")
    parser.add_argument("--views", type=int, default=20, help="views of the pipeline")
    parser.add_argument("--burners", type=int, default=0, help="processes that keep a core busy meanwhile")
    given = parser.parse_args()
    spark = build_spark("local[8]", "first-steps", {"spark.driver.memory": "2g"})
    with load(given.burners):
        for number, seconds in enumerate(run(spark, given.rounds, given.views), 1):
            sys.stdout.write(f"{number} of {given.rounds}: {seconds:.2f} s\n")
            sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main()
