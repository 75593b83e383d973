"""What a change of the program would do to a pipeline: computed by its host, shown before the change and with its approval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self


class RelationKind(StrEnum):
    """What a relation is."""

    TABLE = "table"
    VIEW = "view"


class RelationChangeKind(StrEnum):
    """What happens to a relation."""

    ADDED = "added"
    REMOVED = "removed"
    MODIFIED = "modified"
    CONNECTORS = "connectors"
    """Only its connectors change; its contents stay."""


@dataclass(frozen=True)
class Declaration:
    """A relation in one of the two programs.

    :ivar sql: its statement, as its author wrote it; secrets are references
    :ivar hash: a hash of what it means: equal for declarations between which nothing has to be evaluated
    """

    sql: str
    hash: str

    @classmethod
    def from_dict(cls, d: Mapping[str, Any] | None) -> Self | None:
        """Read the wire form; None for none."""
        return None if d is None else cls(str(d["sql"]), str(d["hash"]))


@dataclass(frozen=True)
class RelationChange:
    """A relation that the two programs declare in different ways.

    :ivar kind: what it is
    :ivar change: what happens to it
    :ivar saved: its declaration in the program of the saved state; None when it is added
    :ivar new: its declaration in the new program; None when it is removed
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
    """A view that has to be evaluated from the start.

    :ivar reads: the number of entries in storage of each relation that is read for it
    :ivar stages: the number of its stages
    :ivar seconds: how long it takes at least, by an estimate
    :ivar seconds_at_most: how long it takes at most, by an estimate; the range is that of earlier evaluations of the pipeline, and
        wide where there were none
    """

    reads: dict[str, int] = field(default_factory=dict)
    stages: int = 0
    seconds: float = 0.0
    seconds_at_most: float = 0.0

    @property
    def rows(self) -> int:
        """The number of entries in storage that are read for it."""
        return sum(self.reads.values())

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read the wire form."""
        seconds = float(d["seconds"])
        return cls(dict(d["reads"]), int(d["stages"]), seconds, float(d.get("seconds_at_most", seconds)))


class OperatorChangeKind(StrEnum):
    """What happens to an operator of a stream program."""

    ADDED = "added"
    REMOVED = "removed"
    MODIFIED = "modified"
    STARTED_ANEW = "started_anew"
    """It is as it was, but starts without state, because of something that it reads."""


@dataclass(frozen=True)
class OperatorChange:
    """An operator of a stream program with which something happens.

    :ivar uid: what names it and its state in both programs
    :ivar name: its name for people
    :ivar change: what happens to it
    :ivar kept_states: the names of the states that it goes on with
    :ivar dropped_states: the names of the states that are dropped
    :ivar reason: why states are dropped; empty when there is nothing to explain
    :ivar keys: the number of keys that it has state for now; None when that is not known
    :ivar bytes: the size of its state at the newest checkpoint; None when that is not known, and for what has only a position
    :ivar is_size_known: False before the first checkpoint, while the state is in the program's process alone
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
            # Hosts of earlier releases said 0 bytes for what they did not know.
            bool(d.get("is_size_known", True)),
        )


class FileChangeKind(StrEnum):
    """What happens to a file of a stream program."""

    ADDED = "added"
    REMOVED = "removed"
    MODIFIED = "modified"


@dataclass(frozen=True)
class FileChange:
    """A file of a stream program whose text differs between the two programs.

    :ivar path: its path
    :ivar change: what happens to it
    :ivar diff: the lines that differ, as a unified difference; a long one is cut, and says so
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
    """Why a change is refused, as an error."""

    error_code: str
    message: str


@dataclass(frozen=True)
class ChangePlan:
    """The effects that a change of the program would have.

    What is read and dropped is counted in entries of the storage, which are mostly more than the rows that a query counts: a row
    that has changed has several until they are merged, and what a view keeps besides its contents has its own.

    :ivar relations: the relations whose declarations differ, by name
    :ivar evaluated: the views to evaluate from the start, by name, in the order in which they are evaluated
    :ivar dropped: the relations whose rows and state are dropped, with the number of entries in storage
    :ivar refusals: why the change is refused; with any, a pipeline does not start with it
    :ivar operators: the operators of the stream program with which something happens, in the order of the program
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
        """The least estimate of the time to evaluate the views, in seconds. The restart of the pipeline comes on top of it."""
        return round(sum(view.seconds for view in self.evaluated.values()), 3)

    @property
    def seconds_at_most(self) -> float:
        """The greatest estimate of the time to evaluate the views, in seconds."""
        return round(sum(view.seconds_at_most for view in self.evaluated.values()), 3)

    @property
    def rows(self) -> int:
        """The number of entries in storage that are read to evaluate the views."""
        return sum(view.rows for view in self.evaluated.values())

    def to_wire(self) -> dict[str, Any]:
        """The object that the REST API shows, with the sums of rows and seconds."""
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
            # A host of a release without stream programs has neither.
            tuple(map(OperatorChange.from_dict, d.get("operators") or ())),
            tuple(map(FileChange.from_dict, d.get("files") or ())),
        )
