"""What goes wrong between a connector and Kafka, as failures of connectors."""

from __future__ import annotations

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.kafka.problems import Problems


def connector_problems(where: str, servers: str) -> Problems[ConnectorFailure]:
    """What the client of a connector says of its connections.

    :param where: the connector and its topic, for messages
    :param servers: the brokers, for messages
    """
    return Problems(where, servers, "the connector", ConnectorFailure, TransientConnectorFailure)
