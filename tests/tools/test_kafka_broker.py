"""The broker of tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fixtures.kafka import Kafka
from tools.kafka_broker import Broker

pytestmark = pytest.mark.processes


def test_records_are_there_after_a_stop_and_a_kill(new_broker: Callable[[], Broker]) -> None:
    broker = new_broker()
    kafka = Kafka(broker)
    topic = kafka.topic(2)
    kafka.send(topic, "a", None, partition=1, key="k", headers=[("h", b"1"), ("h", None)])
    kafka.send(topic, "b")
    broker.stop()
    broker.start()
    before = kafka.read(topic)
    assert [(each.partition, each.offset, each.key, each.value) for each in before] == [
        (0, 0, None, b"b"),
        (1, 0, b"k", b"a"),
        (1, 1, b"k", None),
    ]
    assert before[1].headers == (("h", b"1"), ("h", None))
    broker.kill()
    broker.start()
    assert kafka.read(topic) == before
