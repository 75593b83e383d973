"""Conversion of rows of relations to elements, and of elements to rows of relations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa

from airflow_pipelines.rows.python_values import python_values
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import note_element
from airflow_pipelines.streams.graph.chains import Plan
from airflow_pipelines.streams.operators.base import OperatorSpec
from airflow_pipelines.streams.operators.sink import Write
from airflow_pipelines.streams.operators.source import Read
from airflow_pipelines.streams.relations import DELETE, INSERT, RelationSink, RelationSource
from airflow_pipelines.streams.sinks import Sink, SinkWriter, SubtaskInfo
from airflow_pipelines.streams.sources import Polled
from airflow_pipelines.streams.worker.columns import MisfitError, column_of
from airflow_pipelines.streams.worker.declared_types import Stored, stored_by
from airflow_pipelines.streams.worker.messages import OutputRows, RelationFeed

WEIGHT = "__weight"
KIND = "__kind"
_ROWS = 10_000


def relation_elements(source: RelationSource, rows: bytes) -> Iterator[Polled]:
    """Yield the elements for the rows that a relation gained and lost.

    :param source: the source that reads the relation
    :param rows: a stream of Arrow record batches, whose last column is ``__weight``
    :returns: the elements of each batch
    :raises StreamProgramError: if a row was removed, and the stream does not want changes
    """
    with pa.ipc.open_stream(rows) as reader:
        names = tuple(reader.schema.names[:-1])
        for batch in reader:
            *columns, weights = (python_values(column, "strict") for column in batch.columns)
            values = zip(*columns, strict=True) if columns else [()] * len(weights)
            if weights.count(1) == len(weights):
                to_element = source.to_element
                yield Polled([to_element(names, each, INSERT) for each in values])
            else:
                yield Polled(list(_elements(source, names, zip(values, weights, strict=True))))


def _elements(source: RelationSource, names: tuple[str, ...], rows: Iterator[tuple[tuple[Any, ...], int]]) -> Iterator[Any]:
    to_element = source.to_element
    for values, weight in rows:
        if weight == 1:
            yield to_element(names, values, INSERT)
            continue
        if weight < 0 and not source.with_changes:
            raise StreamProgramError(
                f"The relation {source.relation!r} lost the row {dict(zip(names, values, strict=True))}, and the program reads only"
                " rows that are added. Read the relation with its changes, or one that never loses a row."
            )
        for _ in range(abs(weight)):
            yield to_element(names, values, INSERT if weight > 0 else DELETE)


@dataclass(frozen=True)
class RelationRows(Sink):
    """A sink that keeps the rows that are made for a relation until they are taken.

    :param uid: the uid of the operator
    :param name: the name of the operator
    :param sink: the sink that makes the rows
    :param schema: the schema of the relation
    :param stored: the conversion of the values of each column to their stored form
    :param made: the rows
    """

    uid: str
    name: str
    sink: RelationSink
    schema: pa.Schema
    stored: tuple[Stored | None, ...]
    made: MadeRows

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Create the writer of a task. All tasks write to the same rows."""
        return _RelationWriter(self)

    def refuse_length(self, row: tuple[Any, ...]) -> NoReturn:
        """Refuse a row with another number of values than there are columns.

        :param row: the values
        :raises StreamProgramError: always
        """
        raise StreamProgramError(
            f"The relation {self.sink.relation!r} has the {len(self.schema)} columns {self.schema.names}, and the element has"
            f" {len(row)} values. Give one value for each column."
        )

    def messages(self) -> Iterator[OutputRows]:
        """Remove the rows that were made, and yield them as messages.

        :returns: messages of some thousand rows, in order
        """
        made = self.made.take()
        for start in range(0, len(made.rows), _ROWS):
            end = start + _ROWS
            yield self._encode(made.kinds[start:end], made.rows[start:end], made.elements[start:end])

    def _encode(self, kinds: list[int], rows: list[tuple[Any, ...]], elements: list[Any]) -> OutputRows:
        columns = list(zip(*rows, strict=True)) if len(self.schema) else []
        arrays = [self._column(index, values, elements) for index, values in enumerate(columns)]
        schema = self.schema.append(pa.field(KIND, pa.int8(), nullable=False))
        batch = pa.record_batch([*arrays, pa.array(kinds, pa.int8())], schema=schema)
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, schema) as writer:
            writer.write_batch(batch)
        return OutputRows(self.uid, len(rows), out.getvalue().to_pybytes())

    def _column(self, index: int, values: Sequence[Any], elements: list[Any]) -> pa.Array:
        column = self.schema.field(index)
        try:
            return column_of(values, column, self.stored[index])
        except MisfitError as misfit:
            value, element = values[misfit.position], elements[misfit.position]
            kind = next((kind for name, kind in self.sink.columns if name == column.name), str(column.type))
            reason = f": {misfit.reason}" if misfit.reason else ""
            error = StreamProgramError(
                f"The column {column.name!r} of type {kind} of the relation {self.sink.relation!r} cannot take {value!r}"
                f" ({type(value).__name__}){reason}"
            )
            note_element(error, self.name, element)
            raise error from None


class MadeRows:
    """The rows of one relation that were made in a step."""

    def __init__(self) -> None:
        self.kinds: list[int] = []
        self.rows: list[tuple[Any, ...]] = []
        self.elements: list[Any] = []

    def take(self) -> MadeRows:
        """Remove and return the rows that were made.

        :returns: the rows; none are left here
        """
        taken = MadeRows()
        taken.kinds, taken.rows, taken.elements = self.kinds, self.rows, self.elements
        self.kinds, self.rows, self.elements = [], [], []
        return taken


class _RelationWriter(SinkWriter):
    def __init__(self, target: RelationRows) -> None:
        self._target = target

    def write(self, batch: Batch) -> None:
        to_row, width, made = self._target.sink.to_row, len(self._target.schema), self._target.made
        value = None
        try:
            for value in batch.values:
                kind, row = to_row(value)
                if len(row) != width:
                    self._target.refuse_length(row)
                made.kinds.append(kind)
                made.rows.append(row)
                made.elements.append(value)
        except Exception as error:
            note_element(error, self._target.name, value)
            raise


class RelationPorts:
    """The entry and exit of rows of relations.

    :param plan: the program
    :param schemas: the schemas of relations whose sinks do not know theirs, by uid of the operator
    :raises StreamProgramError: if the schema of a relation is not known
    """

    def __init__(self, plan: Plan, schemas: Mapping[str, bytes]) -> None:
        self._sources: dict[str, RelationSource] = {}
        self._sinks: list[RelationRows] = []
        for chain in plan.chains:
            for step in chain.steps:
                operator = step.node.operator
                if isinstance(operator, Write) and isinstance(operator.sink, RelationSink):
                    schema = _schema(operator.sink, schemas.get(step.uid) or operator.sink.schema)
                    stored = tuple(map(stored_by, schema))
                    self._sinks.append(RelationRows(step.uid, step.name, operator.sink, _plain(schema), stored, MadeRows()))
                elif isinstance(operator, Read) and isinstance(operator.source, RelationSource):
                    self._sources[step.uid] = operator.source

    def operators(self) -> dict[str, OperatorSpec]:
        """Return the operators that replace the sinks of the program.

        :returns: operators that keep rows for :meth:`take`, by uid
        """
        return {sink.uid: Write(sink) for sink in self._sinks}

    def elements(self, feed: RelationFeed) -> Iterator[Polled]:
        """Yield the elements for rows of a relation.

        :param feed: the rows
        :returns: elements, in order
        """
        return relation_elements(self._sources[feed.uid], feed.rows)

    def take(self) -> list[OutputRows]:
        """Remove and return the rows that were made.

        :returns: messages of some thousand rows, those of each relation in order
        """
        return [message for sink in self._sinks for message in sink.messages()]


def _schema(sink: RelationSink, data: bytes) -> pa.Schema:
    if not data:
        raise StreamProgramError(f"The columns of the relation {sink.relation!r} are not known as Arrow has them.")
    schema = pa.ipc.read_schema(pa.py_buffer(data))
    declared = [name for name, _ in sink.columns]
    if schema.names != declared:
        raise StreamProgramError(
            f"The relation {sink.relation!r} has the columns {schema.names}, and the program makes {declared}."
        )
    return schema


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema without the metadata of its columns."""
    return pa.schema([column.remove_metadata() for column in schema])
