"""The translation of problems with Kafka into failures of connectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.rows.formats.failures import FormatFailure, TransientFormatFailure
from airflow_pipelines.systems.kafka.problems import Problems


def connector_problems(where: str, servers: str) -> Problems[ConnectorFailure]:
    """Return the record of the connection problems that the client of a connector reports.

    :param where: the connector and its topic, for messages
    :param servers: the brokers, for messages
    """
    return Problems(where, servers, "the connector", ConnectorFailure, TransientConnectorFailure)


@contextmanager
def failures_of_format(where: str) -> Iterator[None]:
    """Turn failures of a format into failures of the connector.

    :param where: the connector and its topic, for messages
    """
    try:
        yield
    except TransientFormatFailure as failure:
        raise TransientConnectorFailure(f"{where}: {failure}") from failure
    except FormatFailure as failure:
        raise ConnectorFailure(f"{where}: {failure}") from failure
