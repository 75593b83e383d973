"""Places of sources decide if a changed program goes on from their positions."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.datastream import Duration, Types
from airflow_pipelines.datastream.common import SimpleStringSchema
from airflow_pipelines.datastream.connectors import (
    FileSource,
    JdbcConnectionOptions,
    JdbcSource,
    KafkaConsumer,
    KafkaSource,
    KafkaTopicPartition,
    NumberSequenceSource,
    StreamFormat,
)
from airflow_pipelines.streams.sources import Source


def _files(*paths: str, watched: bool = False) -> Source:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), *paths)
    return (builder.monitor_continuously(Duration.of_seconds(1)) if watched else builder).build()


def _topics(*topics: str, servers: str = "x:1", **properties: str) -> Source:
    builder = KafkaSource.builder().set_bootstrap_servers(servers).set_topics(*topics)
    return builder.set_value_only_deserializer(SimpleStringSchema()).set_properties(properties).build()


def _partitions(*partitions: tuple[str, int]) -> Source:
    builder = KafkaSource.builder().set_bootstrap_servers("x:1").set_value_only_deserializer(SimpleStringSchema())
    return builder.set_partitions([KafkaTopicPartition(*each) for each in partitions]).build()


def _table(url: str = "jdbc:postgresql://u:secret@h:1/db", **what: str) -> Source:
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url).build()
    builder: Any = JdbcSource.builder().set_connection_options(options).set_order_columns("id")
    for name, value in what.items():
        builder = getattr(builder, f"set_{name}")(value)
    source: Source = builder.set_type_info(Types.ROW_NAMED(["id"], [Types.LONG()])).build()
    return source


NO_LOOK = {"partition.discovery.interval.ms": "-1"}


@pytest.mark.parametrize(
    ("before", "after", "goes_on"),
    [
        (_files("/a"), _files("/a"), True),
        (_files("/a"), _files("/b"), False),
        (_files("/a"), _files("/a", "/b"), False),
        (_files("/a"), _files("/a", watched=True), False),
        (_files("/a", watched=True), _files("/a", "/b", watched=True), True),
        (_files("/a", watched=True), _files("/b", watched=True), False),
        (_files("/a", "/b"), _files("/b", "/a"), True),
        (_topics("a"), _topics("a", "b"), True),
        (_topics("a", "b", **NO_LOOK), _topics("b", "a", **NO_LOOK), True),
        (_partitions(("a", 0), ("b", 1)), _partitions(("b", 1), ("a", 0)), True),
        (_partitions(("a", 0), ("b", 1)), _partitions(("b", 0), ("a", 1)), False),
        (_topics("a"), _topics("b"), False),
        (_topics("a"), _topics("a", servers="x:1,y:1"), True),
        (_topics("a"), _topics("a", servers="y:1"), False),
        (_topics("a", **NO_LOOK), _topics("a", "b", **NO_LOOK), False),
        (_table(table="t"), _table(table="t"), True),
        (_table(table="t"), _table("jdbc:postgresql://other:secret2@h:1/db", table="t"), True),
        (_table(table="t"), _table(table="t2"), False),
        (_table(table="t"), _table("jdbc:postgresql://h:1/db2", table="t"), False),
        (_table(query="SELECT 1 id"), _table(query="SELECT 2 id"), False),
        (NumberSequenceSource(1, 5), NumberSequenceSource(1, 6), False),
    ],
)
def test_a_source_goes_on_where_it_still_reads(before: Source, after: Source, goes_on: bool) -> None:
    assert (not set(before.places).isdisjoint(after.places)) == goes_on


def test_the_older_class_of_kafka_goes_on_and_no_password_is_shown() -> None:
    older = KafkaConsumer("a", SimpleStringSchema(), {"bootstrap.servers": "x:1", "group.id": "g"})
    assert older.places == ("topic a at x:1",)
    assert "secret" not in str(_table(table="t").places)
