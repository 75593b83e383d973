"""What goes wrong between a connector and Kafka, as failures of connectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.kafka.problems import Problems
from airflow_pipelines.rows.formats.failures import FormatFailure, TransientFormatFailure


def connector_problems(where: str, servers: str) -> Problems[ConnectorFailure]:
    """What the client of a connector says of its connections.

    :param where: the connector and its topic, for messages
    :param servers: the brokers, for messages
    """
    return Problems(where, servers, "the connector", ConnectorFailure, TransientConnectorFailure)


@contextmanager
def failures_of_format(where: str) -> Iterator[None]:
    """Take what a format needs and cannot have for a failure of the connector.

    :param where: the connector and its topic, for messages
    """
    try:
        yield
    except TransientFormatFailure as failure:
        raise TransientConnectorFailure(f"{where}: {failure}") from failure
    except FormatFailure as failure:
        raise ConnectorFailure(f"{where}: {failure}") from failure
