"""Runs Nexmark's queries on Flink SQL; the benchmark starts it in Flink's own environment.

For every query it prints one line of JSON: the seconds the job ran (deployment and reading included, planning excluded), or in a
check the number of rows of the query's final answer.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from pathlib import Path
from typing import Any

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

from benchmarks.nexmark.flink_queries import QUERIES, TABLES


def main() -> int:
    """Run the queries that are named, one after the other in one local cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=Path, required=True, help="folder with a folder of Parquet files per table")
    parser.add_argument("--jars", type=Path, nargs="*", default=[])
    parser.add_argument("--parallelism", type=int, required=True)
    parser.add_argument("--count", action="store_true", help="count the rows of the answers instead of timing")
    parser.add_argument("queries", nargs="+")
    arguments = parser.parse_args()
    environment = _environment(arguments.parallelism, arguments.jars)
    for name, columns in TABLES.items():
        path = (arguments.events / name).resolve().as_uri()
        options = f"'connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet'"
        environment.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({options})")
    for name in arguments.queries:
        try:
            answer = _count(environment, name) if arguments.count else _time(environment, name)
        except Exception:  # noqa: BLE001 - a query that Flink cannot run must not take the others with it
            answer = {"error": traceback.format_exc()[-2000:]}
        print(json.dumps({"query": name, **answer}), flush=True)
    return 0


def _environment(parallelism: int, jars: list[Path]) -> TableEnvironment:
    """Create a local streaming environment, tuned as by the benchmark's authors, with state on the heap and no checkpoints."""
    configuration = Configuration()
    settings = {
        "parallelism.default": str(parallelism),
        "pipeline.jars": ";".join(jar.resolve().as_uri() for jar in jars),
        "pipeline.object-reuse": "true",
        "state.backend.type": "hashmap",
        "table.local-time-zone": "UTC",
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "2 s",
        "table.exec.mini-batch.size": "50000",
        "table.optimizer.distinct-agg.split.enabled": "true",
        "taskmanager.memory.network.max": "256m",
    }
    for key, value in settings.items():
        configuration.set_string(key, value)
    return TableEnvironment.create(EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(configuration).build())


def _time(environment: TableEnvironment, name: str) -> dict[str, Any]:
    # The sink takes the query's own columns, and no primary key, as in the benchmark.
    result = environment.execute_sql(f"CREATE TABLE sink_{name} WITH ('connector' = 'blackhole') AS {QUERIES[name]}")
    result.wait()
    environment.execute_sql(f"DROP TABLE sink_{name}")
    job = result.get_job_client()
    if job is None:
        raise RuntimeError(f"{name} gave no job")
    return {"seconds": job.get_job_execution_result().result().get_net_runtime() / 1000}


def _count(environment: TableEnvironment, name: str) -> dict[str, Any]:
    rows = 0
    with environment.execute_sql(f"SELECT COUNT(*) FROM ({QUERIES[name]})").collect() as changes:
        for row in changes:
            rows = row[0]
    return {"rows": rows}


if __name__ == "__main__":
    sys.exit(main())
