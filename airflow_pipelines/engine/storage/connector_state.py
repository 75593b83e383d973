"""The state of connectors in checkpoints and journals. Fields that this release does not know are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Position: TypeAlias = dict[str, Any]
"""The position of a connector in its source, as JSON in the connector's own format."""


@dataclass(frozen=True, slots=True)
class KeptError:
    """One error of a connector.

    :param timestamp: the time as RFC 3339
    :param index: the index of the record with the error
    :param tag: the kind of error
    :param message: the message
    """

    timestamp: str
    index: int
    tag: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """Return the error in the form that is stored, and shown over REST."""
        return {"timestamp": self.timestamp, "index": self.index, "tag": self.tag, "message": self.message}


@dataclass(frozen=True, slots=True)
class ErrorsState:
    """The errors of one kind of one connector: their number, and the newest of them."""

    count: int = 0
    kept: tuple[KeptError, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {"count": self.count, "kept": [error.to_json() for error in self.kept]}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> ErrorsState:
        """Return the state that :meth:`to_json` wrote."""
        kept = (KeptError(error["timestamp"], error["index"], error["tag"], error["message"]) for error in fields.get("kept", ()))
        return cls(int(fields.get("count", 0)), tuple(kept))


@dataclass(frozen=True, slots=True)
class InputCounts:
    """The counters of an input: the rows and bytes that steps have taken, and the errors."""

    records: int = 0
    bytes: int = 0
    parse_errors: ErrorsState = field(default_factory=ErrorsState)
    transport_errors: ErrorsState = field(default_factory=ErrorsState)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "records": self.records,
            "bytes": self.bytes,
            "parse_errors": self.parse_errors.to_json(),
            "transport_errors": self.transport_errors.to_json(),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> InputCounts:
        """Return the counters that :meth:`to_json` wrote."""
        return cls(
            int(fields.get("records", 0)),
            int(fields.get("bytes", 0)),
            ErrorsState.from_json(fields.get("parse_errors", {})),
            ErrorsState.from_json(fields.get("transport_errors", {})),
        )


@dataclass(frozen=True, slots=True)
class OutputCounts:
    """The counters of an output: the changes and bytes that it has sent, and the errors."""

    transmitted_records: int = 0
    transmitted_bytes: int = 0
    encode_errors: ErrorsState = field(default_factory=ErrorsState)
    transport_errors: ErrorsState = field(default_factory=ErrorsState)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "transmitted_records": self.transmitted_records,
            "transmitted_bytes": self.transmitted_bytes,
            "encode_errors": self.encode_errors.to_json(),
            "transport_errors": self.transport_errors.to_json(),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> OutputCounts:
        """Return the counters that :meth:`to_json` wrote."""
        return cls(
            int(fields.get("transmitted_records", 0)),
            int(fields.get("transmitted_bytes", 0)),
            ErrorsState.from_json(fields.get("encode_errors", {})),
            ErrorsState.from_json(fields.get("transport_errors", {})),
        )


@dataclass(frozen=True, slots=True)
class InputState:
    """The state of an input of a table after a step.

    :param table: the table
    :param declared: True if the program declares it; False if requests created it
    :param position: the position in its source
    :param paused: True if it was paused
    :param counts: its counters
    :param waiting: True if it waits for labels of other inputs; None if that was not recorded, as in journals
    """

    table: str
    declared: bool = True
    position: Position | None = None
    paused: bool = False
    counts: InputCounts = field(default_factory=InputCounts)
    waiting: bool | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
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
    """The changes of a step that an output had not delivered when a checkpoint was taken.

    :param step: the number of the step
    :param epoch: the epoch of the run that committed it
    :param schema: Spark's schema of the rows, as JSON
    :param columns: the columns to show
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
        """Return the stored form."""
        return {
            "step": self.step,
            "epoch": self.epoch,
            "schema": dict(self.schema),
            "columns": list(self.columns),
            "delta": self.delta,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> KeptStep:
        """Return the step that :meth:`to_json` wrote."""
        return cls(int(fields["step"]), int(fields["epoch"]), fields["schema"], tuple(fields["columns"]), dict(fields["delta"]))


@dataclass(frozen=True, slots=True)
class OutputState:
    """The state of an output of a view after a step.

    :param view: the view
    :param counts: its counters
    :param delivered: the number of the newest delivered changes, as targets know it; None if it is not known
    :param undelivered: the steps whose changes were not delivered, in order
    :param opened: True if the target was ever opened
    :param missing_since: the first step that was given up; None if the target misses nothing
    """

    view: str
    counts: OutputCounts = field(default_factory=OutputCounts)
    delivered: int | None = None
    undelivered: tuple[KeptStep, ...] = ()
    opened: bool = False
    missing_since: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
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
    """Return the states of connectors in their stored form.

    :param states: the states by ``relation.connector``
    """
    return {name: state.to_json() for name, state in states.items()}


def read_connectors(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, ConnectorState]:
    """Return the states that :func:`stored_connectors` of this or an earlier release wrote.

    :param stored: the stored states by ``relation.connector``
    :raises KeyError: if a field is missing that all releases write
    :raises TypeError: if a field is of another type
    :raises ValueError: if a field has an invalid value
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
