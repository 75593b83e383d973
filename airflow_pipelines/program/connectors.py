"""Connectors as a program declares them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from airflow_pipelines.program.spans import Span


class ConnectorDirection(Enum):
    """The direction in which a connector moves rows."""

    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Connector:
    """A named input of a table or output of a view, as declared; transport and format names are not checked here."""

    relation: str
    name: str
    direction: ConnectorDirection
    transport: str
    transport_config: Mapping[str, Any] = field(default_factory=dict)
    format: str | None = None
    format_config: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """The rest of the declaration: paused, labels, start_after, max_batch_size, send_snapshot ..."""
    span: Span | None = None

    @property
    def endpoint(self) -> str:
        """The connector's full name, ``relation.connector``."""
        return f"{self.relation}.{self.name}"
