"""Transports that programs can declare and that this release lacks: no pipeline starts with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from airflow_pipelines.program.connectors import ConnectorDirection

_FILES: Final = "files in the same format by 'file_input', rows by HTTP ingress"
_CHANGES: Final = "changes by 'file_output', HTTP egress"


@dataclass(frozen=True, slots=True)
class PlannedTransport:
    """A transport that is known by name only.

    :param direction: the direction of the transport
    :param instead: the alternatives in this release
    """

    direction: ConnectorDirection
    instead: str


def _input(instead: str = _FILES) -> PlannedTransport:
    return PlannedTransport(ConnectorDirection.INPUT, instead)


def _output(instead: str = _CHANGES) -> PlannedTransport:
    return PlannedTransport(ConnectorDirection.OUTPUT, instead)


PLANNED_TRANSPORTS: Final[Mapping[str, PlannedTransport]] = {
    "dynamodb_output": _output(),
    "nats_input": _input(),
    "nats_output": _output(),
    "pub_sub_input": _input(),
}
"""The planned transports by name."""
