"""The properties of Kafka's client that a program can set."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from airflow_pipelines.streams.references import named_references, without_references
from airflow_pipelines.systems.kafka.properties import CONSUMER_PROPERTIES, PRODUCER_PROPERTIES, SHARED_PROPERTIES

_log = logging.getLogger("airflow_pipelines.datastream")
SERVERS: Final = "bootstrap.servers"
GROUP: Final = "group.id"
RESET: Final = "auto.offset.reset"
DISCOVERY: Final = "partition.discovery.interval.ms"
COMMIT: Final = "commit.offsets.on.checkpoint"
PREFIX: Final = "client.id.prefix"

OF_SOURCES: Final = SHARED_PROPERTIES | CONSUMER_PROPERTIES | {SERVERS, RESET, DISCOVERY, COMMIT, PREFIX}
OF_SINKS: Final = SHARED_PROPERTIES | PRODUCER_PROPERTIES | {SERVERS}
_OWN: Final = frozenset({RESET, DISCOVERY, COMMIT, PREFIX})
"""The properties that are not for the client."""
_SUPERFLUOUS: Final = frozenset(
    {"key.deserializer", "value.deserializer", "key.serializer", "value.serializer", "max.poll.records", "enable.auto.commit"}
)
"""The properties of the Java client that have no effect here."""
_INSTEAD: Final = {
    "sasl.jaas.config": "give 'sasl.username' and 'sasl.password'",
    "ssl.truststore.location": "give 'ssl.ca.location', a file in PEM",
    "ssl.truststore.password": "give 'ssl.ca.location', a file in PEM",
    "fetch.max.wait.ms": "give 'fetch.wait.max.ms'",
    "max.request.size": "give 'message.max.bytes'",
    "buffer.memory": "give 'queue.buffering.max.kbytes'",
    "transactional.id": "give set_transactional_id_prefix(...) of the sink's builder",
}
"""The replacements for properties of the Java client."""


def checked_properties(parameter: str, properties: Mapping[str, str], known: frozenset[str]) -> dict[str, str]:
    """Return the properties that have an effect, after checking them.

    :param parameter: name of the parameter, for messages
    :param properties: the properties that the program sets
    :param known: the names of valid properties
    :returns: the properties
    :raises TypeError: if it is not a dict of texts
    :raises ValueError: if a name is unknown
    """
    if not isinstance(properties, Mapping):
        raise TypeError(f"{parameter} takes a dict such as {{'{SERVERS}': 'host:9092'}}, not a {type(properties).__name__}")
    wrong = [key for key, value in properties.items() if not (isinstance(key, str) and isinstance(value, str))]
    if wrong:
        raise TypeError(f"{parameter} takes texts by name, and {wrong[0]!r} is none: write {wrong[0]!r}: '...'")
    for name in properties:
        if name in _SUPERFLUOUS:
            _log.warning("The property %r of Kafka has no effect here", name)
        elif name not in known:
            raise ValueError(
                f"{parameter} has {name!r}, which is no property of librdkafka, Kafka's client here: {_suggest(name, known)}"
            )
    return {name: value for name, value in properties.items() if name not in _SUPERFLUOUS}


def _suggest(name: str, known: frozenset[str]) -> str:
    if name in _INSTEAD:
        return _INSTEAD[name]
    close = get_close_matches(name, known, 3)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else "leave it out"


def references_of(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Return the references in properties.

    :param properties: the properties of a source or sink
    :returns: references such as ``${secret:NAME}``
    """
    return tuple(named_references(*properties.values()))


def client_properties(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the properties for the client, with the values of references. They must never be stored or shown.

    :param properties: the properties of a source or sink
    :returns: properties of librdkafka
    :raises StreamProgramError: if a reference has no value
    """
    given: dict[str, Any] = {name: without_references(value) for name, value in properties.items() if name not in _OWN}
    if PREFIX in properties:
        given["client.id"] = properties[PREFIX]
    return given
