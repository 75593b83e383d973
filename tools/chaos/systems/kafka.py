"""A broker of Kafka: orders in a topic of two partitions, views in topics of changes."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tools.chaos.systems.base import ChangedSums, GoneError, Order, Orders, Sums
from tools.kafka_broker import Broker

_PATIENCE_S: Final = 30.0
_TOPIC: Final = "orders"


class KafkaSystem:
    """Topics of a broker.

    :param broker: a running broker without other users
    :param views: the views with a topic
    """

    name = "kafka"

    def __init__(self, broker: Broker, views: Iterable[str]) -> None:
        self._broker = broker
        self._orders = Orders()
        self._producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True, "log_level": 0, "linger.ms": 1})
        topics = [NewTopic(_TOPIC, 2, 1), *(NewTopic(view, 2, 1) for view in views)]
        admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
        for made in admin.create_topics(topics).values():
            made.result(_PATIENCE_S)

    def source(self) -> dict[str, Any]:
        """Return the declaration of the connector that reads the orders."""
        config = {"topic": _TOPIC, "bootstrap.servers": self._broker.address, "start_from": "earliest", "group.id": "reads-orders"}
        return {"transport": {"name": "kafka_input", "config": config}, "format": {"name": "json"}}

    def target(self, view: str) -> dict[str, Any]:
        """Return the declaration of the connector that writes a view."""
        transport = {"name": "kafka_output", "config": {"topic": view, "bootstrap.servers": self._broker.address}}
        return {"transport": transport, "format": {"name": "json", "config": {"update_format": "debezium"}}}

    def change(self, dice: random.Random) -> None:
        """Write new orders and delete some, each in the partition of its order.

        :raises GoneError: when the broker does not accept them
        """
        gone, come = self._orders.some(dice), self._orders.new(dice)
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failed.append(error)

        for kind, orders in (("delete", gone), ("insert", come)):
            for order in orders:
                value = json.dumps({kind: order.to_json()})
                self._producer.produce(_TOPIC, value, str(order.id), order.id % 2, on_delivery=delivered)
        # A broker that is away accepts them when it is back.
        while self._producer.flush(1):
            pass
        if failed:
            self._orders.reset(self.orders())
            raise GoneError(f"{len(failed)} records were not taken")
        self._orders.replace(gone, come)

    def orders(self) -> list[Order]:
        """Return the sum of the changes in the topic."""
        found: dict[int, Order] = {}
        for message in self._read(_TOPIC):
            ((kind, row),) = json.loads(message).items()
            order = Order.of(row)
            if kind == "insert":
                found[order.id] = order
            else:
                del found[order.id]
        return list(found.values())

    def sums(self, view: str) -> Sums:
        """Return the sum of the committed changes in a view's topic."""
        log = ChangedSums(f"topic {view}")
        for message in self._read(view):
            change = json.loads(message, parse_float=Decimal)["payload"]
            log.change(change["before"], change["after"])
        return log.sums

    def stop(self) -> None:
        """Kill the broker."""
        self._broker.kill()

    def start(self) -> None:
        """Start the broker."""
        self._broker.start()

    def _read(self, topic: str) -> list[bytes]:
        """Return the current committed records, partition by partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._broker.address,
                "group.id": "reads-all",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        try:
            return [value for partition in (0, 1) for value in _records(consumer, TopicPartition(topic, partition, 0))]
        except KafkaException as error:
            raise GoneError(str(error)) from error
        finally:
            consumer.close()


def _records(consumer: Consumer, place: TopicPartition) -> Iterable[bytes]:
    consumer.assign([place])
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.2):
            problem = message.error()
            if problem is None:
                yield message.value() or b""
            elif problem.code() == KafkaError._PARTITION_EOF:
                return
    raise GoneError(f"partition {place.partition} of {place.topic} has no end")
