"""The effects of a program change on a pipeline, computed by its host and shown before the change and with its approval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self


class RelationKind(StrEnum):
    """The kind of a relation."""

    TABLE = "table"
    VIEW = "view"


class RelationChangeKind(StrEnum):
    """The kind of a relation's change."""

    ADDED = "added"
    REMOVED = "removed"
    MODIFIED = "modified"
    CONNECTORS = "connectors"
    """A change of the connectors only; the contents stay."""


@dataclass(frozen=True)
class Declaration:
    """A relation's declaration in one of the two programs.

    :ivar sql: its statement, as its author wrote it; secrets are references
    :ivar hash: a hash of its meaning: equal hashes mean that nothing has to be evaluated
    """

    sql: str
    hash: str

    @classmethod
    def from_dict(cls, d: Mapping[str, Any] | None) -> Self | None:
        """Read the wire form; return None for None."""
        return None if d is None else cls(str(d["sql"]), str(d["hash"]))


@dataclass(frozen=True)
class RelationChange:
    """A relation that the two programs declare differently.

    :ivar kind: its kind
    :ivar change: the kind of its change
    :ivar saved: its declaration in the program of the saved state; None if it is added
    :ivar new: its declaration in the new program; None if it is removed
    """

    kind: RelationKind
    change: RelationChangeKind
    saved: Declaration | None = None
    new: Declaration | None = None

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read the wire form."""
        saved, new = Declaration.from_dict(d["saved"]), Declaration.from_dict(d["new"])
        return cls(RelationKind(d["kind"]), RelationChangeKind(d["change"]), saved, new)


@dataclass(frozen=True)
class ViewEvaluation:
    """A view that has to be evaluated from scratch.

    :ivar reads: the number of stored entries to read, for each relation that the evaluation reads
    :ivar stages: the number of its stages
    :ivar seconds: the estimated minimum duration
    :ivar seconds_at_most: the estimated maximum duration; the range is that of the pipeline's earlier evaluations, and wide if
        there were none
    """

    reads: dict[str, int] = field(default_factory=dict)
    stages: int = 0
    seconds: float = 0.0
    seconds_at_most: float = 0.0

    @property
    def rows(self) -> int:
        """The number of stored entries that the evaluation reads."""
        return sum(self.reads.values())

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read the wire form."""
        seconds = float(d["seconds"])
        return cls(dict(d["reads"]), int(d["stages"]), seconds, float(d.get("seconds_at_most", seconds)))


class OperatorChangeKind(StrEnum):
    """The kind of change of a stream program's operator."""

    ADDED = "added"
    REMOVED = "removed"
    MODIFIED = "modified"
    STARTED_ANEW = "started_anew"
    """An unchanged operator that starts without state because of something that it reads."""


@dataclass(frozen=True)
class OperatorChange:
    """A change of a stream program's operator.

    :ivar uid: the id of the operator and its state in both programs
    :ivar name: its name for people
    :ivar change: the kind of its change
    :ivar kept_states: the names of the states that are kept
    :ivar dropped_states: the names of the states that are dropped
    :ivar reason: the reason why states are dropped; empty if there is nothing to explain
    :ivar keys: the number of keys with state; None if it is unknown
    :ivar bytes: the size of its state at the newest checkpoint; None if it is unknown, and for an operator that has only a position
    :ivar is_size_known: False before the first checkpoint, while the state is only in the program's process
    """

    uid: str
    name: str
    change: OperatorChangeKind
    kept_states: tuple[str, ...] = ()
    dropped_states: tuple[str, ...] = ()
    reason: str = ""
    keys: int | None = None
    bytes: int | None = None
    is_size_known: bool = True

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read the wire form."""
        return cls(
            str(d["uid"]),
            str(d["name"]),
            OperatorChangeKind(d["change"]),
            tuple(d["kept_states"]),
            tuple(d["dropped_states"]),
            str(d["reason"]),
            d["keys"],
            d["bytes"],
            # Hosts of earlier releases sent 0 bytes for unknown sizes.
            bool(d.get("is_size_known", True)),
        )


class FileChangeKind(StrEnum):
    """The kind of change of a stream program's file."""

    ADDED = "added"
    REMOVED = "removed"
    MODIFIED = "modified"


@dataclass(frozen=True)
class FileChange:
    """A file of a stream program whose text differs between the two programs.

    :ivar path: its path
    :ivar change: the kind of its change
    :ivar diff: the lines that differ, as a unified diff; a long one is cut, with a note
    """

    path: str
    change: FileChangeKind
    diff: str

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read the wire form."""
        return cls(str(d["path"]), FileChangeKind(d["change"]), str(d["diff"]))


@dataclass(frozen=True)
class Refusal:
    """The reason why a change is refused, as an error."""

    error_code: str
    message: str


@dataclass(frozen=True)
class ChangePlan:
    """The effects of a change of the program.

    Reads and drops are counted in stored entries, which usually outnumber the rows that a query counts: a changed row has several
    entries until they are merged, and the internal state of a view has entries of its own.

    :ivar relations: the relations whose declarations differ, by name
    :ivar evaluated: the views to evaluate from scratch, by name, in the order of evaluation
    :ivar dropped: the relations whose rows and state are dropped, with the number of stored entries
    :ivar refusals: the reasons for refusing the change; if there are any, the pipeline does not start with it
    :ivar operators: the operators of the stream program that change, in the order of the program
    :ivar files: the files of the stream program whose texts differ
    """

    relations: dict[str, RelationChange] = field(default_factory=dict)
    evaluated: dict[str, ViewEvaluation] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    operators: tuple[OperatorChange, ...] = ()
    files: tuple[FileChange, ...] = ()

    @property
    def seconds(self) -> float:
        """The minimum estimate of the time to evaluate the views, in seconds, without the restart of the pipeline."""
        return round(sum(view.seconds for view in self.evaluated.values()), 3)

    @property
    def seconds_at_most(self) -> float:
        """The maximum estimate of the time to evaluate the views, in seconds."""
        return round(sum(view.seconds_at_most for view in self.evaluated.values()), 3)

    @property
    def rows(self) -> int:
        """The number of stored entries that evaluating the views reads."""
        return sum(view.rows for view in self.evaluated.values())

    def to_wire(self) -> dict[str, Any]:
        """Return the object that the REST API shows, with the sums of rows and seconds."""
        wire = asdict(self)
        wire["evaluated"] = {name: {**asdict(view), "rows": view.rows} for name, view in self.evaluated.items()}
        for name in ("refusals", "operators", "files"):
            wire[name] = list(wire[name])
        return {**wire, "rows": self.rows, "seconds": self.seconds, "seconds_at_most": self.seconds_at_most}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read the wire form."""
        return cls(
            {name: RelationChange.from_dict(change) for name, change in d["relations"].items()},
            {name: ViewEvaluation.from_dict(view) for name, view in d["evaluated"].items()},
            dict(d["dropped"]),
            tuple(Refusal(refusal["error_code"], refusal["message"]) for refusal in d["refusals"]),
            # A host of a release without stream programs sends neither.
            tuple(map(OperatorChange.from_dict, d.get("operators") or ())),
            tuple(map(FileChange.from_dict, d.get("files") or ())),
        )
