"""Servers behind a network that can be cut: databases, Redis, and a broker."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from tests.connectors.conformance.inputs import InputCase, InputConformance
from tests.connectors.conformance.outputs import OutputCase, OutputConformance
from tests.fixtures.kafka import Kafka
from tests.fixtures.postgresql import Database
from tests.fixtures.redis import RedisServer
from tests.tcp_proxy import TcpProxy

pytestmark = pytest.mark.processes


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


class TestKafkaInput(InputConformance):
    @pytest.fixture
    def case(self, kafka: Kafka) -> InputCase:
        topic = kafka.topic()
        rows = [{"id": number, "name": f"n{number}"} for number in range(10)]
        kafka.send(topic, *map(json.dumps, rows))
        made = InputCase()
        made.transport, made.rows, made.ends = "kafka_input", rows, False
        made.config = {"topic": topic, "bootstrap.servers": kafka.address, "start_from": "earliest"}
        made.format, made.format_config = "json", {"update_format": "raw"}
        return made


class _KafkaTopic(OutputCase):
    transport = "kafka_output"
    format = "json"

    def __init__(self, kafka: Kafka) -> None:
        self._topic, self._kafka = kafka.topic(), kafka
        self.config: dict[str, Any] = {"topic": self._topic, "bootstrap.servers": kafka.address}

    def contents(self) -> Counter[tuple[int, str]]:
        left: Counter[tuple[int, str]] = Counter()
        for record in self._kafka.read(self._topic):
            ((kind, row),) = json.loads(record.value or b"").items()
            left[row["id"], row["name"]] += 1 if kind == "insert" else -1
        return +left


class TestKafkaOutput(OutputConformance):
    @pytest.fixture
    def case(self, kafka: Kafka) -> OutputCase:
        return _KafkaTopic(kafka)
