"""Relations of the same pipeline as sources and sinks.

The pipeline brings their rows, and takes the rows that are made for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.sinks import Sink, SinkWriter, SubtaskInfo
from airflow_pipelines.streams.sources import Source, SourceReader

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
"""The kinds of rows."""


@dataclass(frozen=True)
class RelationSource(Source):
    """A source of the rows that are added to a relation and removed from it.

    :param relation: the name of the relation
    :param with_changes: True if the stream also has removed rows; otherwise a removed row is an error
    :param to_element: a function that makes an element from the names of the columns, the values of a row, and the kind of the row:
        INSERT or DELETE
    :param stays_open: True if the stream continues after all connectors that feed the relation have ended
    """

    relation: str
    with_changes: bool
    to_element: Callable[[tuple[str, ...], tuple[Any, ...], int], Any]
    stays_open: bool = False

    @property
    def is_bounded(self) -> bool:
        """False: the source may end, but this is not known before it does."""
        return False

    @property
    def places(self) -> Sequence[str]:
        """The name of the relation."""
        return (self.relation,)

    def splits(self, parallelism: int) -> Sequence[Any]:
        """Refuse the call: only a pipeline has relations."""
        self._refuse()

    def open(self, split: Any, position: Any | None) -> SourceReader:
        """Refuse the call: only a pipeline has relations."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StreamProgramError(
            f"The program reads the relation {self.relation!r}, which is a table or view of its pipeline. In a process of its"
            " own there are no relations: run it as a pipeline, with `airflow-pipelines run FILE --name NAME`."
        )


@dataclass(frozen=True)
class RelationSink(Sink):
    """A sink that makes the rows of a relation.

    :param relation: the name of the relation
    :param columns: names and Spark SQL types
    :param to_row: a function that makes the kind and the values of the columns from an element
    :param primary_key: the columns by which a later row replaces an earlier one; None if rows are only added
    :param schema: the columns as an Arrow schema in IPC format; empty if whoever runs the program knows it
    """

    relation: str
    columns: tuple[tuple[str, str], ...]
    to_row: Callable[[Any], tuple[int, tuple[Any, ...]]]
    primary_key: tuple[str, ...] | None = None
    schema: bytes = b""

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Refuse the call: only a pipeline has relations."""
        raise StreamProgramError(
            f"The program makes the relation {self.relation!r}, which is a view of its pipeline. In a process of its own there"
            " are no relations: run it as a pipeline, with `airflow-pipelines run FILE --name NAME`."
        )
