"""Servers behind a network that can be cut: databases, Redis, an object store, and a broker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
import redis

from tests.connectors.conformance.inputs import InputCase, InputConformance
from tests.connectors.conformance.outputs import OutputCase, OutputConformance
from tests.fixtures.kafka import Kafka
from tests.fixtures.postgresql import Database
from tests.fixtures.redis import RedisServer
from tests.fixtures.s3 import Bucket
from tests.tcp_proxy import TcpProxy

pytestmark = [pytest.mark.processes, pytest.mark.core]


def through(url: str, proxy: TcpProxy) -> str:
    """A URL whose server is reached through a proxy."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    return parts._replace(netloc=f"{user}{'@' if user else ''}127.0.0.1:{proxy.port}").geturl()


@pytest.fixture
def postgres(database: Database) -> Iterator[tuple[Database, TcpProxy]]:
    parts = urlsplit(database.url)
    with TcpProxy(parts.hostname or "127.0.0.1", parts.port or 5432) as proxy:
        yield database, proxy


class _PostgresRows(InputCase):
    transport = "postgres_input"
    can_be_away = True

    def __init__(self, database: Database, proxy: TcpProxy) -> None:
        database.execute("CREATE TABLE people AS SELECT n::bigint AS id, 'n' || n AS name FROM generate_series(0, 9) AS n")
        self.config = {"uri": through(database.url, proxy), "query": "SELECT id, name FROM people ORDER BY id"}
        self.rows = [{"id": number, "name": f"n{number}"} for number in range(10)]
        self.take_away, self.bring_back = proxy.cut, proxy.restore  # type: ignore[method-assign]


class TestPostgresInput(InputConformance):
    @pytest.fixture
    def case(self, postgres: tuple[Database, TcpProxy]) -> InputCase:
        return _PostgresRows(*postgres)


class _PostgresChanges(InputCase):
    transport = "postgres_cdc_input"
    can_be_away = True
    ends = False

    def __init__(self, database: Database, proxy: TcpProxy) -> None:
        database.execute("CREATE TABLE people (id bigint PRIMARY KEY, name text)", "CREATE PUBLICATION p FOR TABLE people")
        database.execute("ALTER TABLE people REPLICA IDENTITY FULL")
        # What comes after the slot is read by whoever begins with it, as often as that is tried.
        slot = f"of_{database.name}"
        database.execute(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
        self.rows = [{"id": number, "name": f"n{number}"} for number in range(10)]
        database.execute(*(f"INSERT INTO people VALUES ({row['id']}, '{row['name']}')" for row in self.rows[:6]))
        database.execute("INSERT INTO people SELECT n, 'n' || n FROM generate_series(6, 9) AS n")
        self.config = {"uri": through(database.url, proxy), "publication": "p", "source_table": "people"}
        self.config |= {"slot": slot, "snapshot": False}
        self.take_away, self.bring_back = proxy.cut, proxy.restore  # type: ignore[method-assign]


class TestPostgresCdcInput(InputConformance):
    @pytest.fixture
    def case(self, postgres: tuple[Database, TcpProxy]) -> InputCase:
        return _PostgresChanges(*postgres)


class _PostgresTable(OutputCase):
    transport = "postgres_output"
    can_be_away = True
    key = ("id",)

    def __init__(self, database: Database, proxy: TcpProxy) -> None:
        database.execute("CREATE TABLE people (id bigint PRIMARY KEY, name text)")
        self.config = {"uri": through(database.url, proxy), "table": "people"}
        self._database = database
        self.take_away, self.bring_back = proxy.cut, proxy.restore  # type: ignore[method-assign]

    def contents(self) -> Counter[tuple[int, str]]:
        return Counter((row[0], row[1]) for row in self._database.rows("SELECT id, name FROM people"))


class TestPostgresOutput(OutputConformance):
    @pytest.fixture
    def case(self, postgres: tuple[Database, TcpProxy]) -> OutputCase:
        return _PostgresTable(*postgres)


class _Objects(InputCase):
    transport = "s3_input"
    format, format_config = "json", {"update_format": "raw", "lines": "single"}

    def __init__(self, bucket: Bucket) -> None:
        keys = {"aws_access_key_id": bucket.access_key, "aws_secret_access_key": bucket.secret_key}
        client = boto3.client("s3", endpoint_url=bucket.endpoint, region_name="us-east-1", **keys)
        self.rows = [{"id": number, "name": f"n{number}"} for number in range(10)]
        for number, rows in enumerate((self.rows[:4], self.rows[4:5], self.rows[5:])):
            lines = [json.dumps(row) for row in rows]
            client.put_object(Bucket=bucket.name, Key=f"in/{number}.json", Body="\n".join([*lines, ""]).encode())
        self.config = {"bucket_name": bucket.name, "prefix": "in/", "region": "us-east-1", **keys}
        self.config["endpoint_url"] = bucket.endpoint


class TestS3Input(InputConformance):
    @pytest.fixture
    def case(self, s3: Callable[[], Bucket]) -> InputCase:
        return _Objects(s3())


class _RedisKeys(OutputCase):
    transport = "redis_output"
    can_be_away = True
    key = ("id",)

    def __init__(self, url: str, client: redis.Redis, proxy: TcpProxy) -> None:
        self.config = {"connection_string": through(url, proxy), "key_prefix": "people:"}
        self._client = client
        self.take_away, self.bring_back = proxy.cut, proxy.restore  # type: ignore[method-assign]

    def contents(self) -> Counter[tuple[int, str]]:
        rows = [json.loads(str(self._client.get(key))) for key in self._client.scan_iter("people:*")]
        return Counter((row["id"], row["name"]) for row in rows)


class TestRedisOutput(OutputConformance):
    @pytest.fixture
    def case(self, redis_server: RedisServer, redis_url: str) -> Iterator[OutputCase]:
        parts = urlsplit(redis_url)
        with TcpProxy(parts.hostname or "127.0.0.1", parts.port or 6379) as proxy:
            yield _RedisKeys(redis_url, redis_server.client(), proxy)


@pytest.fixture
def way_to_kafka(kafka: Kafka) -> Iterator[TcpProxy]:
    """The broker takes itself to be behind it, so that it is gone as a whole when it is cut."""
    with TcpProxy("127.0.0.1", kafka.broker.detour, kafka.broker.proxy) as proxy:
        yield proxy


class _KafkaRecords(InputCase):
    transport = "kafka_input"
    format, format_config = "json", {"update_format": "raw"}
    ends = False
    can_be_away = True

    def __init__(self, kafka: Kafka, proxy: TcpProxy) -> None:
        topic = kafka.topic()
        self.rows = [{"id": number, "name": f"n{number}"} for number in range(10)]
        kafka.send(topic, *map(json.dumps, self.rows))
        self.config = {"topic": topic, "bootstrap.servers": f"127.0.0.1:{proxy.port}", "start_from": "earliest"}
        self.take_away, self.bring_back = proxy.cut, proxy.restore  # type: ignore[method-assign]


class TestKafkaInput(InputConformance):
    @pytest.fixture
    def case(self, kafka: Kafka, way_to_kafka: TcpProxy) -> InputCase:
        return _KafkaRecords(kafka, way_to_kafka)


class _KafkaTopic(OutputCase):
    transport = "kafka_output"
    format = "json"
    can_be_away = True

    def __init__(self, kafka: Kafka, proxy: TcpProxy) -> None:
        self._topic, self._kafka = kafka.topic(), kafka
        self.config: dict[str, Any] = {"topic": self._topic, "bootstrap.servers": f"127.0.0.1:{proxy.port}"}
        self.take_away, self.bring_back = proxy.cut, proxy.restore  # type: ignore[method-assign]

    def contents(self) -> Counter[tuple[int, str]]:
        left: Counter[tuple[int, str]] = Counter()
        for record in self._kafka.read(self._topic):
            ((kind, row),) = json.loads(record.value or b"").items()
            left[row["id"], row["name"]] += 1 if kind == "insert" else -1
        return +left


class TestKafkaOutput(OutputConformance):
    @pytest.fixture
    def case(self, kafka: Kafka, way_to_kafka: TcpProxy) -> OutputCase:
        return _KafkaTopic(kafka, way_to_kafka)
