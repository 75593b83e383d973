"""Clients of Kafka: consumers that read partitions, producers, and how a client is closed whose brokers may be away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from airflow_pipelines.systems.kafka.problems import Problems
from airflow_pipelines.systems.kafka.properties import CLIENT_PROPERTIES, CONSUMER_DEFAULTS

ClientT = TypeVar("ClientT")


def new_reader(properties: Mapping[str, Any], problems: Problems[Any], on_commit: Callable[..., None]) -> Consumer:
    """Return a consumer for partitions that its user assigns, from offsets that its user keeps.

    An offset that does not exist and the end of a partition come as messages with an error.

    :param properties: the properties that were given, with a group
    :param problems: the problems that record errors, and log for the client
    :param on_commit: the function that is called with the outcome of a commit
    :raises Exception: the lasting failure of the problems if a property has an invalid value
    """
    own = {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "on_commit": on_commit,
    }
    return _connect(Consumer, {**CONSUMER_DEFAULTS, **properties, **own}, problems)


def new_group_member(properties: Mapping[str, Any], problems: Problems[Any], group: str) -> Consumer:
    """Return a consumer that reads nothing, and stands for a group whose offsets a producer commits.

    :param properties: the properties of the producer
    :param problems: the problems that record errors, and log for the client
    :param group: the name of the group
    """
    shared = {name: value for name, value in properties.items() if name in CLIENT_PROPERTIES}
    own = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed"}
    return _connect(Consumer, {**shared, **own}, problems)


def new_producer(properties: Mapping[str, Any], problems: Problems[Any]) -> Producer:
    """Return a producer.

    :param properties: the properties that were given, and those that its user sets
    :param problems: the problems that record errors, and log for the client
    :raises Exception: the lasting failure of the problems if a property has an invalid value
    """
    return _connect(Producer, {"linger.ms": 5, **properties}, problems)


def _connect(client: Callable[[dict[str, Any]], ClientT], properties: Mapping[str, Any], problems: Problems[Any]) -> ClientT:
    try:
        return client({**properties, "error_cb": problems.note, "logger": problems})
    except (KafkaException, ValueError, TypeError) as error:
        problem = error.args[0] if error.args else error
        raise problems.invalid_property(problem.str() if isinstance(problem, KafkaError) else str(problem)) from error


def close_client(close: Callable[[], None], problems: Problems[Any], name: str, patience_s: float) -> bool:
    """Close a client, without waiting for long for brokers that are away.

    A client that commits offsets waits for the answer without a limit.

    :param close: the function that closes it
    :param problems: the problems of the client
    :param name: the name of the client, for the thread that closes it
    :param patience_s: the seconds to wait
    :returns: False if it was not closed by then. It goes on closing, and logs nothing more.
    """
    closing = threading.Thread(target=close, name=f"close {name}", daemon=True)
    closing.start()
    closing.join(patience_s)
    if closing.is_alive():
        problems.abandon_client()
        return False
    return True
