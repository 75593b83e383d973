"""Targets in this process, which tests take away and bring back, and the connectors that write to them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict

from airflow_pipelines.connectors import registry
from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.connectors.changes import Changes
from airflow_pipelines.connectors.definition import ConnectorDefinition, Guarantee, OutputContext, OutputDefinition
from airflow_pipelines.rows.zsets import WEIGHT


class Target:
    """What outlives the transports that write to it."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, list[Any]]] = []
        """By the number that it was written with, the values of the first column."""
        self.tuples: list[list[tuple[Any, ...]]] = []
        """The values of all columns."""
        self.weights: list[list[int]] = []
        self.opened: list[bool] = []
        self.rewound: list[int] = []
        self.is_there = True
        self.loses_answers = 0
        self.refuses = False
        self.blocked = threading.Event()
        self.blocked.set()
        self.closed = 0

    @property
    def values(self) -> list[Any]:
        """The values of the first column, in the order in which they were written."""
        return [value for _, values in self.rows for value in values]


class Plain:
    """Writes, and remembers nothing."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._closed = False

    def open(self, resumed: bool) -> None:
        if not self.target.is_there:
            raise TransientConnectorFailure("the target is not there")
        self.target.opened.append(resumed)

    def write(self, step: int, changes: Changes) -> tuple[int, int]:
        if self._closed:
            raise ConnectorFailure("it is not open")
        self.target.blocked.wait()
        if not self.target.is_there:
            raise TransientConnectorFailure("the target is gone")
        if self.target.refuses:
            raise ConnectorFailure("the table was dropped")
        tables = list(changes.tables())
        rows = [value for table in tables for value in table.column(0).to_pylist()]
        self.target.rows.append((step, rows))
        self.target.tuples.append([tuple(row.values()) for table in tables for row in table.drop_columns([WEIGHT]).to_pylist()])
        self.target.weights.append([weight for table in tables for weight in table[WEIGHT].to_pylist()])
        if self.target.loses_answers:
            self.target.loses_answers -= 1
            raise TransientConnectorFailure("the connection was lost before the answer")
        return len(rows), 10 * len(rows)

    def close(self) -> None:
        self.target.closed += 1
        self._closed = True


class Committing(Plain):
    """Knows which steps the target has."""

    def committed_step(self) -> int | None:
        return self.target.rows[-1][0] if self.target.rows else None


class Rewinding(Plain):
    """Takes back."""

    def rewind(self, step: int) -> None:
        self.target.rewound.append(step)


TARGETS: Final[dict[str, Target]] = {}
"""By the name that declarations give."""


class TargetOptions(BaseModel):
    """Options of the connectors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    target: str


def _plain(options: TargetOptions, _: OutputContext) -> Plain:
    return Plain(TARGETS[options.target])


def _committing(options: TargetOptions, _: OutputContext) -> Committing:
    return Committing(TARGETS[options.target])


PLAIN_OUTPUT: Final = OutputDefinition(name="plain_test_output", options=TargetOptions, open=_plain)
COMMITTING_OUTPUT: Final = OutputDefinition(
    name="committing_test_output", options=TargetOptions, open=_committing, guarantee=Guarantee.EXACTLY_ONCE
)
MIRRORING_OUTPUT: Final = OutputDefinition(
    name="mirroring_test_output",
    options=TargetOptions,
    open=_committing,
    guarantee=Guarantee.EXACTLY_ONCE,
    mirrors=lambda _: True,
)


@contextmanager
def registered(*definitions: ConnectorDefinition) -> Iterator[None]:
    """Make connectors known while this is entered.

    :param definitions: of names that no installed connector has
    """
    found = cast(dict[str, ConnectorDefinition], registry._CONNECTORS._loaded)
    found.update({definition.name: definition for definition in definitions})
    try:
        yield
    finally:
        for definition in definitions:
            del found[definition.name]
