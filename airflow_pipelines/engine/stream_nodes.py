"""The plan nodes of stream programs: all operators of a program together, and the relations that it produces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from airflow_pipelines.program.streams import STREAM_PROGRAM, RelationOutput, StreamProgram
from airflow_pipelines.sql.plan.ir.description import DERIVED
from airflow_pipelines.sql.plan.ir.node import ColumnTypes

SOURCE_COLUMNS: ColumnTypes = (("split", "int"), ("kind", "tinyint"), ("records", "bigint"), ("payload", "binary"))
"""The columns of the hidden table of a source, which has one row for each message about the source."""
GRAPH_COLUMNS: ColumnTypes = (("output", "string"), ("sequence", "bigint"), ("rows", "bigint"), ("data", "binary"))
"""The columns of the output of a program's operators, which has one row for each message of rows for a relation."""


@dataclass(frozen=True, slots=True)
class StreamGraph:
    """The node of all operators of a stream program.

    Its layout is independent of the program, because state outlives changes of code, and operators come and go: for each operator
    it is decided which of its states can be used.

    :param program: the stream program
    """

    program: StreamProgram = field(metadata=DERIVED)

    layout_reads: ClassVar[frozenset[str]] = frozenset()
    strategy: ClassVar[str] = "stream program"
    starts_with_rows: ClassVar[bool] = False
    keeps_contents: ClassVar[bool] = False
    append_only: ClassVar[bool] = True

    @property
    def reads(self) -> frozenset[str]:
        """The relations that the node reads, see :class:`Node`."""
        return self.program.reads

    @property
    def rereads(self) -> frozenset[str]:
        """The relations that the node reads again, see :class:`Node`."""
        return frozenset()

    def renamed(self, _: Sequence[str], /) -> StreamGraph:
        """Return the node itself, see :class:`Node`. The columns are those of messages."""
        return self


@dataclass(frozen=True, slots=True)
class StreamOutput:
    """The node of a relation that a stream program produces.

    Its layout has the key, but not the operator that produces the rows.

    :param output: the relation
    """

    output: RelationOutput = field(metadata=DERIVED)
    primary_key: tuple[str, ...] | None = field(init=False)

    strategy: ClassVar[str] = "stream output"
    starts_with_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "primary_key", self.output.primary_key)

    @property
    def reads(self) -> frozenset[str]:
        """The relations that the node reads, see :class:`Node`."""
        return frozenset({STREAM_PROGRAM})

    @property
    def rereads(self) -> frozenset[str]:
        """The relations that the node reads again, see :class:`Node`."""
        return frozenset()

    @property
    def keeps_contents(self) -> bool:
        """True if the relation has a primary key, see :class:`Node`. A later row with the same key replaces an earlier one."""
        return self.primary_key is not None

    @property
    def append_only(self) -> bool:
        """True if the relation has no primary key, see :class:`Node`."""
        return self.primary_key is None

    def renamed(self, _: Sequence[str], /) -> StreamOutput:
        """Return the node itself, see :class:`Node`. The columns have the names that the program gave."""
        return self
