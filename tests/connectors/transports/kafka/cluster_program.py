"""A host on a small cluster: reads topics as lines of JSON on its input ask for, and answers each with what came."""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_pipelines.connectors.common_options import ConnectorOptions
from airflow_pipelines.connectors.definition import InputContext, PipelineReference
from airflow_pipelines.connectors.option_models import read_options
from airflow_pipelines.connectors.parsers import new_parser
from airflow_pipelines.connectors.registry import find_format
from airflow_pipelines.connectors.transports.kafka import cluster
from airflow_pipelines.connectors.transports.kafka import input as kafka_input
from airflow_pipelines.connectors.transports.kafka.definitions import KAFKA_INPUT
from airflow_pipelines.engine.spark.internals import java_session
from airflow_pipelines.engine.spark.sessions import build_spark
from airflow_pipelines.rows.formats.defaults import wall_clock
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.relations import col, relation

TABLE = relation(
    col("id", "BIGINT", null=False),
    col("name", "VARCHAR", default="'nobody'"),
    col("at", "TIMESTAMP"),
    col("amount", "DECIMAL", precision=10, scale=2),
    col("what", "VARIANT"),
)
LINES = relation(col("line", "VARBINARY"))
code, parts_of = cluster.code, cluster.parts_of
_PATIENCE_S = 150.0


class _Said(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def answer(spark: SparkSession, asked: dict[str, Any]) -> dict[str, Any]:
    """Read a topic until its end, or until so many parts were read.

    :param spark: the application
    :param asked: ``options`` of the connector, ``format`` and ``format_options``, ``position``, ``chunks`` after how many to stop,
        ``parts`` after how many to stop that came since the first
        job, ``large`` from where on the cluster reads (None: it does not), and ``job`` how many records a job reads at most
    """
    said = _Said()
    logging.getLogger("airflow_pipelines.connectors.transports.kafka").addHandler(said)
    cluster.LARGE_BACKLOG, cluster._JOB_RECORDS = asked["large"] or 0, asked["job"]  # type: ignore[misc]
    # The consumer leaves something for the cluster, also of few records.
    kafka_input._BLOCK_RECORDS, kafka_input._LAG_S = asked.get("block", 100), 0.0  # type: ignore[misc]
    cluster.code = lambda: asked.get("code") or code()
    jobs: list[int] = []
    cluster.parts_of = lambda blocks, ranges: jobs.append(len(blocks)) or parts_of(blocks, ranges)  # type: ignore[arg-type, func-returns-value]
    table = LINES if asked["format"] == "raw" else TABLE
    source = KAFKA_INPUT.open(
        KAFKA_INPUT.options.model_validate({"start_from": "earliest", "enable.partition.eof": True, **asked["options"]}),
        _context(spark if asked["large"] is not None else None, table, asked["format"], asked["format_options"]),
    )
    rows: list[dict[str, Any]] = []
    errors: list[str] = []
    found: dict[str, Any] = {"num_errors": 0, "records": 0, "bytes": 0, "chunks": 0, "parts": 0, "largest": 0, "problem": None}
    position, began = asked["position"], time.monotonic()
    try:
        source.open(position)
        while found["chunks"] != asked["chunks"]:
            if time.monotonic() > began + _PATIENCE_S:
                raise TimeoutError("there is no end")
            chunk = source.read(asked.get("most", 100_000), 0.25)
            if chunk is None:
                continue
            position = chunk.position
            found["chunks"] += 1
            found["parts"] += bool(jobs)
            found["num_errors"] += chunk.num_parse_errors
            found["records"] += chunk.records
            found["largest"] = max(found["largest"], chunk.records)
            found["bytes"] += chunk.size_bytes
            errors += [f"{error.index} {error.message}" for error in chunk.parse_errors]
            if chunk.changes is not None and not asked.get("quiet"):
                rows += chunk.changes.rows.to_pylist()
            if chunk.end_of_input or found["parts"] == asked.get("parts"):
                break
    except Exception as error:  # noqa: BLE001  whoever asked is told
        found["problem"] = f"{type(error).__name__}: {error}"
    finally:
        source.close()
    logging.getLogger("airflow_pipelines.connectors.transports.kafka").removeHandler(said)
    seconds = time.monotonic() - began
    plans = _plans(spark) if asked.get("plans") else ""
    return {
        **found,
        "jobs": jobs,
        "plans": plans,
        "rows": rows,
        "errors": errors,
        "position": position,
        "said": said.lines,
        "seconds": seconds,
    }


def _plans(spark: SparkSession) -> str:
    """What Spark's own page would show of what it has done."""
    done = java_session(spark).sharedState().statusStore().executionsList()
    return "\n".join(
        f"{done.apply(number).description()} {done.apply(number).details()} {done.apply(number).physicalPlanDescription()}"
        for number in range(done.size())
    )


def _context(spark: SparkSession | None, table: RelationSchema, format_name: str, given: dict[str, Any]) -> InputContext:
    definition = find_format(format_name)
    assert definition is not None
    options = read_options(definition.options, given, format_name, "t.c")
    return InputContext(
        endpoint="t.c",
        schema=table,
        format=format_name,
        new_parser=lambda: new_parser(definition, table, options, "t.c", wall_clock),
        now=wall_clock,
        pipeline=PipelineReference("1", "p"),
        common=ConnectorOptions(),
        format_options=options,
        spark=spark,
    )


def main(jars: str) -> None:
    """Answer until nobody asks.

    :param jars: the folder of Spark's source for Kafka; ``none`` for a cluster without it
    """
    logging.getLogger("airflow_pipelines").setLevel(logging.INFO)
    more = {} if jars == "none" else {"spark.jars": ",".join(map(str, sorted(Path(jars).glob("*.jar"))))}
    cluster._CORES = 1  # type: ignore[misc]
    limits = {"spark.driver.memory": "1g", "spark.executor.memory": "768m"}
    spark = build_spark("local-cluster[1,1,1024]", "host", {**limits, **more})
    for line in sys.stdin:
        print("answer " + json.dumps(answer(spark, json.loads(line)), default=str), flush=True)  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
