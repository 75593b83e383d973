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

    :ivar reads: the number of stored rows of each relation that is read for it
    :ivar stages: the number of its stages
    :ivar seconds: an estimate of how long it takes
    """

    reads: dict[str, int] = field(default_factory=dict)
    stages: int = 0
    seconds: float = 0.0

    @property
    def rows(self) -> int:
        """The number of stored rows that are read for it."""
        return sum(self.reads.values())

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read the wire form."""
        return cls(dict(d["reads"]), int(d["stages"]), float(d["seconds"]))


@dataclass(frozen=True)
class Refusal:
    """Why a change is refused, as an error."""

    error_code: str
    message: str


@dataclass(frozen=True)
class ChangePlan:
    """What a change of the program would do. Numbers of rows are those of stored rows, which may be more than a query counts.

    :ivar relations: the relations whose declarations differ, by name
    :ivar evaluated: the views to evaluate from the start, by name, in the order in which they are evaluated
    :ivar dropped: the relations whose rows and state are dropped, with the number of stored rows
    :ivar refusals: why the change is refused; with any, a pipeline does not start with it
    """

    relations: dict[str, RelationChange] = field(default_factory=dict)
    evaluated: dict[str, ViewEvaluation] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()

    @property
    def seconds(self) -> float:
        """An estimate of how long it takes to evaluate the views."""
        return round(sum(view.seconds for view in self.evaluated.values()), 3)

    @property
    def rows(self) -> int:
        """The number of stored rows that are read to evaluate the views."""
        return sum(view.rows for view in self.evaluated.values())

    def to_wire(self) -> dict[str, Any]:
        """The object that the REST API shows, with the sums of rows and seconds."""
        wire = asdict(self)
        wire["evaluated"] = {name: {**asdict(view), "rows": view.rows} for name, view in self.evaluated.items()}
        return {**wire, "refusals": [asdict(refusal) for refusal in self.refusals], "rows": self.rows, "seconds": self.seconds}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Self:
        """Read the wire form."""
        return cls(
            {name: RelationChange.from_dict(change) for name, change in d["relations"].items()},
            {name: ViewEvaluation.from_dict(view) for name, view in d["evaluated"].items()},
            dict(d["dropped"]),
            tuple(Refusal(refusal["error_code"], refusal["message"]) for refusal in d["refusals"]),
        )
