"""Topics of a real broker that the tasks of a real cluster read: what comes is what the host alone reads."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from airflow_pipelines.connectors.transports.kafka import cluster
from airflow_pipelines.connectors.transports.kafka.cluster_blocks import BlockReading
from airflow_pipelines.rows.formats.json import JsonOptions
from tests.connectors.relations import SCALARS
from tests.fixtures.kafka import Kafka
from tools.kafka_broker import PASSWORD, USER
from tools.maven import NoJarsError, jars

Read = Callable[..., dict[str, Any]]
PROJECT = Path(__file__).parents[4]
PARTITIONS = 3
EACH = 900


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the host writes, in a folder with what its executors write."""
    return tmp_path_factory.mktemp("cluster") / "log"


@pytest.fixture(scope="module")
def read(processes: None, log: Path) -> Iterator[Read]:
    """Reads a topic on a cluster of one executor."""
    try:
        folder = jars("spark_kafka")
    except NoJarsError as error:
        pytest.skip(f"Spark's source for Kafka cannot be had: {error}")
    home = log.parent / "spark"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        # Executors write beside what Spark is.
        (home / entry.name).symlink_to(entry)
    environment = os.environ | {"SPARK_HOME": str(home), "PYTHONPATH": str(PROJECT), "PYSPARK_PYTHON": sys.executable}
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.connectors.transports.kafka.cluster_program", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=log.parent,
            env=environment,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    requests, answers = process.stdin, process.stdout

    def ask(options: dict[str, Any], **asked: Any) -> dict[str, Any]:
        usual = {"format": "json", "format_options": {"update_format": "raw"}, "large": 300, "job": 1000, "position": None}
        requests.write(json.dumps({**usual, "chunks": -1, "options": options, **asked}) + "\n")
        requests.flush()
        for line in answers:
            if line.startswith("answer "):
                answer: dict[str, Any] = json.loads(line.removeprefix("answer "))
                return answer
        raise AssertionError(log.read_text()[-3000:])

    yield ask
    requests.close()
    try:
        process.wait(60)
    finally:
        process.kill()


def value(number: int) -> bytes | None:
    """A record that says something, or does not: its id says in which partition it is."""
    odd: dict[int, bytes | None] = {
        3: None,
        5: b"",
        7: b"{bad",
        11: b'{"id": null}',
        13: b'{"name": "\xff\xfe"}',
        17: b'{"id": %d}' % (2**63),
        19: b'{"id": %d, "amount": "123456789.99"}' % number,
        23: b'{"id": %d} {"id": %d, "name": null}' % (number, number),
        29: b'{"id": %d, "what": [1, {"a": null}, 1e400]}' % number,
    }
    row = {
        "id": number,
        "name": f"n\u00e4me {number}",
        "at": "2024-01-02 03:04:05.678901",
        "amount": "99999999.99",
        "what": {"n": [number]},
    }
    place = number // PARTITIONS
    return odd[place % 97] if place % 97 in odd and place % 7 == 0 else json.dumps(row).encode()


def filled(kafka: Kafka, of: Callable[[int], bytes | None] = value, **more: Any) -> str:
    """A topic with records in all partitions."""
    topic = kafka.topic(PARTITIONS)
    for partition in range(PARTITIONS):
        kafka.send(topic, *(of(place * PARTITIONS + partition) for place in range(EACH)), partition=partition, **more)
    return topic


@pytest.fixture(scope="module")
def topic(kafka: Kafka, read: Read) -> dict[str, Any]:
    """The options of an input of a topic with records of all kinds."""
    return {"topic": filled(kafka), "bootstrap.servers": kafka.address}


@pytest.fixture(scope="module")
def alone(read: Read, topic: dict[str, Any]) -> dict[str, Any]:
    """What the host reads there."""
    return read(topic, large=None)


def by_partition(rows: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """The rows of each partition in the order in which they came."""
    return {number: [row for row in rows if row["id"] % PARTITIONS == number] for number in range(PARTITIONS)}


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Two readings gave the same."""
    for name in ("problem", "position", "records", "bytes", "num_errors"):
        assert one[name] == other[name], name
    assert sorted(one["errors"]) == sorted(other["errors"])


def test_tasks_read_what_the_host_reads(read: Read, topic: dict[str, Any], alone: dict[str, Any]) -> None:
    together = read(topic)
    assert not alone["jobs"]
    assert len(together["jobs"]) > 1
    assert alone["num_errors"] > 20
    assert alone["records"] > EACH
    same(alone, together)
    assert by_partition(together["rows"]) == by_partition(alone["rows"])


@pytest.mark.parametrize(
    ("name", "options", "of"),
    [
        (
            "csv",
            {"headers": True},
            lambda number: b"id,name,at,amount,what\n%d,a b,2024-01-02 03:04:05,%d.5,1" % (number, number % 9),
        ),
        ("csv", {}, lambda number: b"%d,,,%s,\n%d,a,,," % (number, b"x" if number % 150 == 0 else b"1", number)),
        ("raw", {}, lambda number: None if number % 100 == 0 else os.urandom(3) + b"%d" % number),
        (
            "json",
            {"update_format": "insert_delete", "array": True},
            lambda number: b'[{"insert": {"id": %d}}, {"delete": {"id": 1}}]' % number,
        ),
    ],
)
def test_formats(kafka: Kafka, read: Read, name: str, options: dict[str, Any], of: Callable[[int], bytes | None]) -> None:
    declared = {"topic": filled(kafka, of), "bootstrap.servers": kafka.address}
    alone = read(declared, large=None, format=name, format_options=options)
    together = read(declared, format=name, format_options=options)
    assert together["jobs"]
    assert alone["records"] > EACH
    same(alone, together)
    assert Counter(map(str, together["rows"])) == Counter(map(str, alone["rows"]))


def test_only_records_with_certain_headers(kafka: Kafka, read: Read) -> None:
    topic = filled(kafka, headers=[("kind", "a"), ("kind", b"\xff"), ("empty", None)])
    for partition in range(PARTITIONS):
        kafka.send(topic, *(b'{"id": %d}' % partition for _ in range(EACH)), partition=partition, headers=[("kind", "c")])
        kafka.send(topic, b'{"id": %d}' % partition, partition=partition)
    wanted = {"and": [{"header": {"name": "kind", "pattern": "x|a"}}, {"header": {"name": "empty", "pattern": ""}}]}
    options = {"topic": topic, "bootstrap.servers": kafka.address, "header_filter": wanted}
    alone, together = read(options, large=None), read(options)
    assert len(together["jobs"]) > 1
    assert EACH < alone["records"] <= PARTITIONS * EACH
    same(alone, together)
    assert by_partition(together["rows"]) == by_partition(alone["rows"])


def test_a_restart_in_the_middle_loses_nothing_and_repeats_nothing(
    read: Read, topic: dict[str, Any], alone: dict[str, Any]
) -> None:
    rows: list[dict[str, Any]] = []
    errors: list[str] = []
    position = None
    # In the middle of a job, before anything was read, after the last part of a job, with a start that reads alone, to the end.
    for asked in ({"parts": 1}, {"chunks": 1}, {"parts": PARTITIONS}, {"large": None, "chunks": 2}, {}):
        part = read(topic, position=position, job=300, **asked)
        assert part["problem"] is None
        assert part["jobs"] or "chunks" in asked
        position = part["position"]
        rows += part["rows"]
        errors += part["errors"]
    assert position == alone["position"]
    assert by_partition(rows) == by_partition(alone["rows"])
    assert sorted(errors) == sorted(alone["errors"])


def test_what_is_not_committed_is_not_read_nor_waited_for(kafka: Kafka, read: Read) -> None:
    from confluent_kafka import Producer

    topic = kafka.topic(PARTITIONS)
    producers: list[Producer] = []

    def write(first: int, end: str) -> None:
        producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": f"{topic}-{end}-{first}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for number in range(first, first + 900):
            producer.produce(topic, b'{"id": %d}' % number, partition=number % PARTITIONS)
        producer.flush(30)
        if end != "open":
            {"commit": producer.commit_transaction, "abort": producer.abort_transaction}[end](30)
        producers.append(producer)

    for number, end in enumerate(("commit", "abort", "commit", "abort", "abort", "open", "commit")):
        write(number * 900, end)
    options = {"topic": topic, "bootstrap.servers": kafka.address}
    alone, together = read(options, large=None), read(options)
    assert together["jobs"]
    same(alone, together)
    assert [row["id"] for row in by_partition(alone["rows"])[0]] == [*range(0, 900, 3), *range(1800, 2700, 3)]
    assert by_partition(together["rows"]) == by_partition(alone["rows"])
    everything = read({**options, "isolation.level": "read_uncommitted"})
    assert everything["records"] == 7 * 900
    producers[-2].abort_transaction(30)


def test_a_password_reaches_brokers_and_nobody_else(
    kafka: Kafka, read: Read, log: Path, topic: dict[str, Any], alone: dict[str, Any]
) -> None:
    login = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": PASSWORD}
    options = {**topic, "bootstrap.servers": kafka.broker.guarded_address, **login}
    together = read(options, plans=True)
    assert together["jobs"]
    same(alone, together)
    assert "MapInArrow" in together["plans"]
    assert PASSWORD not in json.dumps(together)
    refused = read({**options, "sasl.password": PASSWORD + "!"}, plans=True)
    assert "Authentication failed" in refused["problem"]
    assert PASSWORD not in json.dumps(refused)
    written = [log, *(log.parent / "spark" / "work").rglob("std*")]
    assert len(written) > 1
    assert not any(PASSWORD in file.read_text(errors="replace") for file in written)


def test_no_chunk_has_more_records_than_a_step_may_have(read: Read, topic: dict[str, Any], alone: dict[str, Any]) -> None:
    together = read(topic, most=50)
    same(alone, together)
    assert together["jobs"]
    # A few records have two rows.
    assert together["largest"] <= 52


def test_executors_with_other_code_read_nothing(read: Read, topic: dict[str, Any], alone: dict[str, Any]) -> None:
    other = read(topic, code="of another release")
    assert not other["jobs"]
    same(alone, other)
    assert by_partition(other["rows"]) == by_partition(alone["rows"])
    (said,) = other["said"]
    assert "the host goes on alone" in said
    assert "is not the host's release" in said


def test_what_stays_with_the_host_says_so(read: Read, topic: dict[str, Any], alone: dict[str, Any]) -> None:
    ordered = read({**topic, "synchronize_partitions": True})
    assert not ordered["jobs"]
    same(alone, ordered)
    assert any("'synchronize_partitions'" in said for said in ordered["said"])
    found = read({**topic, "security.protocol": "ssl", "ssl.key.pem": "x"}, chunks=0)
    assert any("option 'ssl.key.pem' has no equal" in said for said in found["said"])


def test_records_that_expired_are_no_reason_to_stop(kafka: Kafka, read: Read) -> None:
    options = {"topic": filled(kafka), "bootstrap.servers": kafka.address, "resume_earliest_if_data_expires": True}
    begun = read(options, chunks=2)
    for partition in range(PARTITIONS):
        kafka.expire(options["topic"], partition, 250 + partition)
    alone, together = read(options, large=None, position=begun["position"]), read(options, position=begun["position"])
    assert any("had been removed from the topic" in said for said in together["said"])
    assert together["jobs"]
    same(alone, together)
    assert by_partition(together["rows"]) == by_partition(alone["rows"])


def test_without_sparks_source_the_host_is_told_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster, "LARGE_BACKLOG", 10)
    reading = BlockReading("t", SCALARS, "json", JsonOptions(update_format="raw"), {}, 0, "code")
    reader = cluster.ClusterReader(spark, {"bootstrap.servers": "127.0.0.1:1"}, lambda: reading, "kafka_input t")
    reader.saw(10, 1000)
    with caplog.at_level(logging.INFO, cluster.__name__):
        for _ in range(2):
            reader.fetch({0: 0}, {0: (0, 1000)}, 20)
    assert not reader.has_parts
    (record,) = caplog.records
    assert "kafka_input t: the cluster cannot read it, so that the host goes on alone: " in record.message
    assert "kafka" in record.message.partition("alone: ")[2].partition("What a cluster needs")[0]
