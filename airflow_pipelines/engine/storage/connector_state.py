"""What checkpoints and journals keep of connectors. Fields that this release does not know are passed over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Position: TypeAlias = dict[str, Any]
"""A connector's place in its source, as JSON whose form is the connector's own."""


@dataclass(frozen=True, slots=True)
class KeptError:
    """One error of a connector.

    :param timestamp: RFC 3339
    :param index: the record that it is about
    :param tag: what kind of error it is
    :param message: what was wrong
    """

    timestamp: str
    index: int
    tag: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """The form in which it is stored, and shown over REST."""
        return {"timestamp": self.timestamp, "index": self.index, "tag": self.tag, "message": self.message}


@dataclass(frozen=True, slots=True)
class ErrorsState:
    """Errors of one kind of one connector: how many there were, and the newest of them."""

    count: int = 0
    kept: tuple[KeptError, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return {"count": self.count, "kept": [error.to_json() for error in self.kept]}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ErrorsState:
        """What :meth:`to_json` wrote."""
        kept = (KeptError(error["timestamp"], error["index"], error["tag"], error["message"]) for error in fields.get("kept", ()))
        return cls(int(fields.get("count", 0)), tuple(kept))


@dataclass(frozen=True, slots=True)
class InputCounts:
    """Counters of an input: rows and bytes that steps have taken, and errors."""

    records: int = 0
    bytes: int = 0
    parse_errors: ErrorsState = field(default_factory=ErrorsState)
    transport_errors: ErrorsState = field(default_factory=ErrorsState)

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "records": self.records,
            "bytes": self.bytes,
            "parse_errors": self.parse_errors.to_json(),
            "transport_errors": self.transport_errors.to_json(),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> InputCounts:
        """What :meth:`to_json` wrote."""
        return cls(
            int(fields.get("records", 0)),
            int(fields.get("bytes", 0)),
            ErrorsState.from_json(fields.get("parse_errors", {})),
            ErrorsState.from_json(fields.get("transport_errors", {})),
        )


@dataclass(frozen=True, slots=True)
class OutputCounts:
    """Counters of an output: changes and bytes that it has sent, and errors."""

    transmitted_records: int = 0
    transmitted_bytes: int = 0
    encode_errors: ErrorsState = field(default_factory=ErrorsState)
    transport_errors: ErrorsState = field(default_factory=ErrorsState)

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "transmitted_records": self.transmitted_records,
            "transmitted_bytes": self.transmitted_bytes,
            "encode_errors": self.encode_errors.to_json(),
            "transport_errors": self.transport_errors.to_json(),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> OutputCounts:
        """What :meth:`to_json` wrote."""
        return cls(
            int(fields.get("transmitted_records", 0)),
            int(fields.get("transmitted_bytes", 0)),
            ErrorsState.from_json(fields.get("encode_errors", {})),
            ErrorsState.from_json(fields.get("transport_errors", {})),
        )


@dataclass(frozen=True, slots=True)
class InputState:
    """An input of a table after a step.

    :param table: the table
    :param declared: whether the program declares it; else it came from requests
    :param position: where its source stands
    :param paused: whether it was paused
    :param counts: its counters
    :param waiting: whether it waits for labels of others; None where that was not noted, which is in journals
    """

    table: str
    declared: bool = True
    position: Position | None = None
    paused: bool = False
    counts: InputCounts = field(default_factory=InputCounts)
    waiting: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        fields = {
            "direction": "input",
            "table": self.table,
            "declared": self.declared,
            "position": self.position,
            "paused": self.paused,
            "figures": self.counts.to_json(),
        }
        return fields if self.waiting is None else {**fields, "waiting": self.waiting}


@dataclass(frozen=True, slots=True)
class KeptStep:
    """Changes of a step that an output had not delivered when a checkpoint was taken.

    :param step: the number of the step
    :param epoch: that of the run that committed it
    :param schema: Spark's schema of the rows, as JSON
    :param columns: those to show
    :param delta: the manifest of the batch with the rows
    """

    step: int
    epoch: int
    schema: Mapping[str, Any]
    columns: tuple[str, ...]
    delta: dict[str, Any]

    @property
    def files(self) -> frozenset[str]:
        """The batch files with the rows."""
        return frozenset(self.delta.get("files", ()))

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "step": self.step,
            "epoch": self.epoch,
            "schema": dict(self.schema),
            "columns": list(self.columns),
            "delta": self.delta,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> KeptStep:
        """What :meth:`to_json` wrote."""
        return cls(int(fields["step"]), int(fields["epoch"]), fields["schema"], tuple(fields["columns"]), dict(fields["delta"]))


@dataclass(frozen=True, slots=True)
class OutputState:
    """An output of a view after a step.

    :param view: the view
    :param counts: its counters
    :param delivered: the greatest number of changes that were delivered, as targets know it; None when that is not known
    :param undelivered: what was not, in order
    :param opened: whether the target was ever opened
    :param missing_since: the first step that was given up; None when the target misses nothing
    """

    view: str
    counts: OutputCounts = field(default_factory=OutputCounts)
    delivered: int | None = None
    undelivered: tuple[KeptStep, ...] = ()
    opened: bool = False
    missing_since: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        fields: dict[str, Any] = {"direction": "output", "view": self.view, "figures": self.counts.to_json()}
        if self.delivered is not None:
            fields["delivered"] = self.delivered
        if self.undelivered:
            fields["undelivered"] = [kept.to_json() for kept in self.undelivered]
        if self.opened:
            fields["opened"] = True
        if self.missing_since is not None:
            fields["missing_since"] = self.missing_since
        return fields


ConnectorState: TypeAlias = InputState | OutputState


def stored_connectors(states: Mapping[str, ConnectorState]) -> dict[str, dict[str, Any]]:
    """The states of connectors in the form in which they are stored.

    :param states: by ``relation.connector``
    """
    return {name: state.to_json() for name, state in states.items()}


def read_connectors(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, ConnectorState]:
    """The states that :func:`stored_connectors` wrote, of this or an earlier release.

    :param stored: by ``relation.connector``
    :raises KeyError: when a field is missing that always was there
    :raises TypeError: when a field is of another type
    :raises ValueError: when a field has a value that it cannot have
    """
    return {name: _state(fields) for name, fields in stored.items()}


def _state(fields: Mapping[str, Any]) -> ConnectorState:
    counts = fields.get("figures", {})
    if fields["direction"] == "output":
        undelivered = tuple(map(KeptStep.from_json, fields.get("undelivered", ())))
        opened = bool(fields.get("opened", False))
        delivered, missing = fields.get("delivered"), fields.get("missing_since")
        return OutputState(fields["view"], OutputCounts.from_json(counts), delivered, undelivered, opened, missing)
    return InputState(
        fields["table"],
        bool(fields["declared"]),
        fields.get("position"),
        bool(fields.get("paused", False)),
        InputCounts.from_json(counts),
        fields.get("waiting"),
    )
