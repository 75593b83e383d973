"""Kafka: JSON records of a full topic to an aggregate, next to Spark Structured Streaming over the same topic.

Ours is a pipeline on a shared host, as users run it; it takes turns with a query of Structured Streaming in an application of its
own, which idles meanwhile, as the host does in its turn. Both begin with the oldest record and end with the newest, and both are
warm. The answers of both are compared. The broker runs on the same two cores.
"""

from __future__ import annotations

import gc
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TypeAlias

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.opening import open_input
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType, decimal
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from benchmarks.connectors.events import COLUMNS, SPARK_COLUMNS, TOTALS, events
from benchmarks.connectors.spark import spark_with_kafka
from benchmarks.measure import Bound, Measurement, timed
from benchmarks.options import Options
from tools.kafka_broker import Broker
from tools.served import stop_hosts

RECORDS: Final = 3_000_000
WARM_UP: Final = 1_000_000
PARTITIONS: Final = 4
TARGET_PER_S: Final = 150_000.0
TARGET_RATIO: Final = 0.8
_STEP_RECORDS: Final = 1_000_000
"""So many records our steps and Spark's micro-batches have at most."""
_PATIENCE_S: Final = 600.0
_POLL_S: Final = 0.1
_JAVA: Final = ("-Xmx512m", "-XX:+UseSerialGC")
_SCHEMA: Final = RelationSchema(
    "events",
    (
        Column("id", ColumnType("BIGINT")),
        Column("customer", ColumnType("BIGINT")),
        Column("kind", ColumnType("VARCHAR")),
        Column("amount", decimal(10, 2)),
        Column("made_at", ColumnType("TIMESTAMP")),
        Column("note", ColumnType("VARCHAR")),
    ),
)
_FORMAT: Final = {"update_format": "raw"}

Totals: TypeAlias = Mapping[tuple[int, str], tuple[int, Decimal]]
"""By customer and kind how many events there are, and what they come to."""


def measure(options: Options) -> list[Measurement]:
    """Measure all.

    :param options: how often each figure is taken
    :raises RuntimeError: when the two systems give different answers
    """
    with tempfile.TemporaryDirectory(prefix="pipelines-kafka-") as name, _topics(Path(name)) as address:
        # As a host does, whose garbage collections would otherwise look at all modules again and again.
        gc.freeze()
        reading = statistics.median(_read_alone(address) for _ in range(options.repeats))
        with _host(Path(name) / "home") as client, spark_with_kafka() as spark:
            _require_the_same(_ours(client, address, "warm-up", WARM_UP), _structured(spark, address, "warm-up", WARM_UP))
            ours, theirs = [], []
            for turn in range(options.repeats + 1):
                ours.append(_ours_seconds(client, address, f"turn-{turn}"))
                theirs.append(_structured_seconds(spark, address))
                print(f"  ours {RECORDS / ours[-1]:,.0f} records/s, Structured Streaming {RECORDS / theirs[-1]:,.0f}", flush=True)
    # In the first turn, both applications still compile much.
    return measurements(RECORDS / reading, [RECORDS / each for each in ours[1:]], [RECORDS / each for each in theirs[1:]])


def measurements(reading: float, ours: list[float], theirs: list[float]) -> list[Measurement]:
    """Return the figures that follow from rates.

    :param reading: the records per second that the connector alone reads and parses
    :param ours: the rates of pipelines, turn by turn
    :param theirs: the rates of Structured Streaming in the same turns
    """
    ratio = statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
    return [
        Measurement("connectors.kafka.read_alone_per_s", reading, "1/s", bound=Bound.AT_LEAST),
        Measurement("connectors.kafka.structured_per_s", statistics.median(theirs), "1/s", bound=Bound.AT_LEAST),
        Measurement("connectors_kafka_records_per_s", statistics.median(ours), "1/s", TARGET_PER_S, Bound.AT_LEAST),
        Measurement("connectors_kafka_vs_structured", ratio, "x", TARGET_RATIO, Bound.AT_LEAST),
    ]


def _read_alone(address: str) -> float:
    """Seconds for reading and parsing all records, with nothing behind it."""
    config = {"topic": "turns", "bootstrap.servers": address, "start_from": "earliest", "enable.partition.eof": True}
    declared = Connector("events", "topic", ConnectorDirection.INPUT, "kafka_input", config, "json", _FORMAT)
    source = open_input(declared, _SCHEMA, NO_REFERENCES, PipelineReference("benchmark", "benchmark"))
    found = 0
    with timed() as watch:
        source.open(None)
        while True:
            chunk = source.read(100_000, 1.0)
            if chunk is not None:
                found += chunk.records
                if chunk.end_of_input:
                    break
    source.close()
    _require_all("the connector", found, RECORDS)
    return watch.seconds


def _program(topic: str, address: str, note: str) -> str:
    """Return the program over a topic, with another text each time, because a host remembers the programs that it has compiled."""
    config = {"topic": topic, "bootstrap.servers": address, "start_from": "earliest", "enable.partition.eof": True}
    declared = {
        "name": "topic",
        "transport": {"name": "kafka_input", "config": config},
        "format": {"name": "json", "config": _FORMAT},
        "max_batch_size": _STEP_RECORDS,
    }
    table = f"CREATE TABLE events ({COLUMNS}) WITH ('connectors' = '{json.dumps([declared])}');"
    return f"-- {note}\n{table}\nCREATE MATERIALIZED VIEW totals AS {TOTALS};\n"


def _ours_seconds(client: PipelineClient, address: str, name: str) -> float:
    pipeline = PipelineBuilder(client, name, sql=_program("turns", address, name)).create()
    with timed() as watch:
        _run(pipeline)
    _require_all("the pipeline", sum(count for count, _ in _answer(pipeline).values()), RECORDS)
    pipeline.stop(force=True)
    return watch.seconds


def _ours(client: PipelineClient, address: str, topic: str, records: int) -> Totals:
    """Compute the answer over a topic with a pipeline."""
    pipeline = PipelineBuilder(client, topic, sql=_program(topic, address, topic)).create()
    _run(pipeline)
    answer = _answer(pipeline)
    pipeline.stop(force=True)
    _require_all("the pipeline", sum(count for count, _ in answer.values()), records)
    return answer


def _run(pipeline: Pipeline) -> None:
    pipeline.start(timeout_s=_PATIENCE_S)
    deadline = time.monotonic() + _PATIENCE_S
    while not pipeline.is_complete():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the pipeline was not done with the topic within {_PATIENCE_S:.0f} s")
        time.sleep(_POLL_S)


def _answer(pipeline: Pipeline) -> Totals:
    rows = pipeline.query("SELECT customer, kind, events, amount FROM totals")
    return {(row["customer"], row["kind"]): (row["events"], Decimal(str(row["amount"]))) for row in rows}


def _structured(spark: SparkSession, address: str, topic: str, records: int) -> Totals:
    """Compute the answer over a topic with Structured Streaming."""
    writer = _totals(spark, address, topic).writeStream.outputMode("complete").format("memory").queryName("answer")
    _await(writer)
    rows = spark.table("answer").collect()
    answer = {(row.customer, row.kind): (row.events, row.amount) for row in rows}
    _require_all("Structured Streaming", sum(count for count, _ in answer.values()), records)
    return answer


def _structured_seconds(spark: SparkSession, address: str) -> float:
    with timed() as watch:
        _await(_totals(spark, address, "turns").writeStream.outputMode("update").format("noop"))
    return watch.seconds


def _totals(spark: SparkSession, address: str, topic: str) -> DataFrame:
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", topic)
    records = source.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", _STEP_RECORDS).load()
    parsed = records.selectExpr(f"FROM_JSON(CAST(value AS STRING), '{SPARK_COLUMNS}') AS event").select("event.*")
    parsed.createOrReplaceTempView("events")
    return spark.sql(TOTALS)


def _await(writer: Any) -> None:
    with tempfile.TemporaryDirectory(prefix="pipelines-structured-") as folder:
        query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
        if not query.awaitTermination(int(_PATIENCE_S)):
            query.stop()
            raise TimeoutError(f"Structured Streaming was not done with the topic within {_PATIENCE_S:.0f} s")


def _require_the_same(ours: Totals, theirs: Totals) -> None:
    if ours != theirs:
        different = [group for group in {*ours, *theirs} if ours.get(group) != theirs.get(group)]
        raise RuntimeError(f"{len(different)} groups differ, such as {different[:3]}")


def _require_all(who: str, found: int, wanted: int) -> None:
    if found != wanted:
        raise RuntimeError(f"{who} has {found} of {wanted} records")


@contextmanager
def _host(home: Path) -> Iterator[PipelineClient]:
    """Yield a client with a shared host of its own."""
    client = PipelineClient(home=home)
    try:
        yield client
    finally:
        client.close()
        stop_hosts(home)


@contextmanager
def _topics(folder: Path) -> Iterator[str]:
    """Start a broker with the two topics, and yield its address."""
    broker = Broker(folder / "broker", *_JAVA)
    broker.start()
    try:
        for topic, records in (("warm-up", WARM_UP), ("turns", RECORDS)):
            _fill(broker.address, topic, records)
        yield broker.address
    finally:
        broker.close()


def _fill(address: str, topic: str, records: int) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(60)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "queue.buffering.max.messages": 500_000})
    for number, value in enumerate(events(0, records)):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(_PATIENCE_S):
        raise TimeoutError(f"the broker did not take all records within {_PATIENCE_S:.0f} s")


if __name__ == "__main__":
    for figure in measure(Options(repeats=2)):
        print(f"{figure.name} {figure.value:.3f} {figure.unit}")
