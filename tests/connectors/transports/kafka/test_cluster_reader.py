"""When a cluster reads a topic and when the host does, without a cluster."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from airflow_pipelines.connectors.base import Lag
from airflow_pipelines.connectors.transports.kafka import cluster
from airflow_pipelines.connectors.transports.kafka.cluster import ClusterReader, cluster_reader
from airflow_pipelines.connectors.transports.kafka.cluster_blocks import BlockReading, ClusterBlock
from airflow_pipelines.connectors.transports.kafka.options import KAFKA_INPUT_OPTIONS
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.systems.kafka.java_properties import java_properties
from tests.connectors.contexts import input_context
from tests.connectors.relations import SCALARS

OPTIONS = JsonOptions(update_format="raw")


def reading() -> BlockReading:
    return BlockReading("t", SCALARS, "json", OPTIONS, {}, 0, "code")


def reader(monkeypatch: pytest.MonkeyPatch) -> ClusterReader:
    monkeypatch.setattr(cluster, "LARGE_BACKLOG", 100)
    spark = Mock()
    spark.sparkContext.defaultParallelism = 4
    found = ClusterReader(spark, {}, reading, "kafka_input t", ["sec ret"])
    found.saw(10, 1000)
    return found


def test_how_large_records_are_is_known_before_a_cluster_reads_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LARGE_BACKLOG", 100)
    spark = Mock()
    spark.sparkContext.defaultParallelism = 4
    found = ClusterReader(spark, {}, reading, "kafka_input t")
    found.saw(0, 0)
    assert not found.wants(Lag(records=101))
    found.saw(1, 0)
    assert found.wants(Lag(records=101))


def test_only_much_is_for_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    found = reader(monkeypatch)
    assert not found.wants(None)
    assert not found.wants(Lag(records=100))
    assert found.wants(Lag(records=101))
    asked: list[Any] = []
    monkeypatch.setattr(found, "_blocks", lambda ranges, most: asked.append((ranges, most)) or [])  # type: ignore[func-returns-value]
    found.fetch({0: 0, 1: 5}, {0: (0, 60), 1: (0, 45)}, 20)
    # Records are missing, or the topic is another one: the consumer says so.
    found.fetch({0: 0, 1: 5}, {0: (1, 600), 1: (0, 45)}, 20)
    found.fetch({0: 0, 1: 50}, {0: (0, 600), 1: (0, 45)}, 20)
    assert not found.has_parts
    assert not asked
    found.fetch({0: 0, 1: 5}, {0: (0, 60), 1: (0, 46)}, 20)
    assert asked == [({0: (0, 60), 1: (5, 46)}, 20)]
    assert not found.wants(Lag(records=101))
    parts = [found.next_part(), found.next_part(), found.next_part()]
    assert [part and (part.partition, part.next) for part in parts] == [(0, 60), (1, 46), None]
    assert found.wants(Lag(records=101))


@pytest.mark.parametrize(("cores", "dynamic", "reads"), [(3, None, False), (3, "false", False), (4, None, True), (2, "true", True)])
def test_a_few_cores_are_slower_than_the_host(cores: int, dynamic: str | None, reads: bool) -> None:
    spark = Mock()
    spark.sparkContext.defaultParallelism = cores
    spark.sparkContext.getConf.return_value = {"spark.dynamicAllocation.enabled": dynamic}
    found = ClusterReader(spark, {}, reading, "kafka_input t")
    found.saw(10, 1000)
    assert found.wants(Lag(records=10**6)) is reads


def test_a_job_has_as_much_as_fits_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    found = reader(monkeypatch)
    asked: list[Any] = []
    monkeypatch.setattr(found, "_blocks", lambda ranges, _: asked.append(ranges[0][1]) or [])  # type: ignore[func-returns-value]
    for size in (1 << 20, 100, 0):
        found.saw(1000, 1000 * size)
        found.fetch({0: 0}, {0: (0, 10**7)}, 20)
        while found.next_part() is not None:
            pass
    assert [round(number, -1) for number in asked] == [130, 1_000_000, 1_000_000]


def test_a_cluster_that_fails_is_not_asked_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    found = reader(monkeypatch)
    monkeypatch.setattr(found, "_blocks", Mock(side_effect=ValueError('no class for sec ret; password="other";')))
    with caplog.at_level(logging.INFO, cluster.__name__):
        found.fetch({0: 0}, {0: (0, 1000)}, 20)
    assert not found.has_parts
    assert not found.wants(Lag(records=1000))
    (record,) = caplog.records
    assert "kafka_input t: the cluster cannot read it, so that the host goes on alone: no class" in record.message
    assert "sec ret" not in record.message
    assert "other" not in record.message


def test_a_cluster_without_room_for_a_job_is_not_waited_for_longer_than_a_limit(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found = reader(monkeypatch)
    cancelled = threading.Event()

    def waits_for_executors(_: Any) -> None:
        assert cancelled.wait(30)
        raise ValueError("Job 7 cancelled part of cancelled job group")

    monkeypatch.setattr(cluster, "_JOB_S", 0.01)
    monkeypatch.setattr(cluster, "sibling", Mock())
    monkeypatch.setattr(cluster, "begin_jobs", Mock())
    monkeypatch.setattr(cluster, "cancel_jobs", lambda *_: cancelled.set())
    monkeypatch.setattr(cluster, "collected", waits_for_executors)
    # Its parallelism is compared with the number of partitions.
    cluster.sibling.return_value.sparkContext.defaultParallelism = 4  # type: ignore[attr-defined]
    found.fetch({0: 0}, {0: (0, 1000)}, 20)
    assert not found.has_parts
    assert not found.wants(Lag(records=1000))
    (record,) = caplog.records
    assert "was not done within 0 s" in record.message
    assert "cancelled" not in record.message


def test_a_job_in_time_has_no_alarm_left(monkeypatch: pytest.MonkeyPatch) -> None:
    found = reader(monkeypatch)
    monkeypatch.setattr(cluster, "sibling", Mock())
    monkeypatch.setattr(cluster, "begin_jobs", Mock())
    monkeypatch.setattr(cluster, "collected", Mock(side_effect=ValueError("other")))
    cluster.sibling.return_value.sparkContext.defaultParallelism = 4  # type: ignore[attr-defined]
    alarms = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    found.fetch({0: 0}, {0: (0, 1000)}, 20)
    left = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer) and thread not in alarms]
    for thread in left:
        thread.join(5)
        assert not thread.is_alive()


def test_a_connector_that_is_closed_does_not_complain(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    found = reader(monkeypatch)
    monkeypatch.setattr(cluster, "cancel_jobs", Mock())

    def cancelled(*_: Any) -> list[ClusterBlock]:
        found.cancel()
        raise ValueError("cancelled")

    monkeypatch.setattr(found, "_blocks", cancelled)
    found.fetch({0: 0}, {0: (0, 1000)}, 20)
    assert not found.wants(Lag(records=1000))
    assert not caplog.records


@pytest.mark.parametrize(
    ("master", "reads"), [("local[4]", False), ("local", False), ("local-cluster[1,1,1024]", True), ("yarn", True)]
)
def test_one_machine_is_no_cluster(master: str, reads: bool) -> None:
    options = KAFKA_INPUT_OPTIONS.model_validate({"topic": "t", "bootstrap.servers": "a:1"})
    context = input_context(SCALARS, "json", lambda: JsonParser(SCALARS, OPTIONS))
    spark = Mock()
    spark.sparkContext.master = master
    assert (cluster_reader(options, replace(context, spark=spark, format_options=OPTIONS)) is not None) is reads
    assert cluster_reader(options, context) is None


def test_defaults_that_the_host_evaluates_stay_there(caplog: pytest.LogCaptureFixture) -> None:
    options = KAFKA_INPUT_OPTIONS.model_validate({"topic": "t", "bootstrap.servers": "a:1", "include_offset": True})
    table = replace(SCALARS, described=Mock())
    context = input_context(table, "json", lambda: JsonParser(table, OPTIONS))
    spark = Mock()
    spark.sparkContext.master = "yarn"
    with caplog.at_level(logging.INFO, cluster.__name__):
        assert cluster_reader(options, replace(context, spark=spark, format_options=OPTIONS)) is None
    assert "DEFAULT" in caplog.text


def test_a_password_that_had_to_be_quoted_is_in_no_message(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    password = 'be"fore and after'
    login = {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": password}
    options = KAFKA_INPUT_OPTIONS.model_validate({"topic": "t", "bootstrap.servers": "a:1", **login})
    spark = Mock()
    spark.sparkContext.master = "yarn"
    context = replace(input_context(SCALARS, "json", lambda: JsonParser(SCALARS, OPTIONS)), spark=spark, format_options=OPTIONS)
    found = cluster_reader(options, context)
    assert found is not None
    jaas = java_properties(options.properties())["sasl.jaas.config"]
    monkeypatch.setattr(cluster, "LARGE_BACKLOG", 100)
    monkeypatch.setattr(found, "_blocks", Mock(side_effect=ValueError(f"sasl.jaas.config={jaas} is wrong, as is {password}")))
    with caplog.at_level(logging.INFO, cluster.__name__):
        found.fetch({0: 0}, {0: (0, 1000)}, 20)
    assert "is wrong" in caplog.text
    assert "fore" not in caplog.text
    assert "after" not in caplog.text
    assert password not in repr(found)
