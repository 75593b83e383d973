"""Sources and sinks for relations of a program's own pipeline, and the mapping between rows and elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from airflow_pipelines.datastream.collecting import PrintSink
from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.row import Row, RowKind, checked_row, fields_of
from airflow_pipelines.datastream.common.type_information import Converter
from airflow_pipelines.datastream.relation_columns import RelationColumn, canonical_name, plain_value, relation_columns
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.relations import RelationSink, RelationSource
from airflow_pipelines.streams.sinks import SinkWriter, SubtaskInfo
from airflow_pipelines.streams.values import are_atomic

_KINDS = tuple(RowKind)
_INSERT = RowKind.INSERT
_REMOVING = (RowKind.DELETE, RowKind.UPDATE_BEFORE)
_MOST_LAYOUTS = 1000


def relation_source(name: str, *, with_changes: bool, stays_open: bool = False) -> RelationSource:
    """Return a source that reads a table or view of the program's pipeline.

    :param name: the name of the relation, as in SQL
    :param with_changes: True to include rows that it loses
    :param stays_open: True to keep the stream open after the connectors that feed the relation have ended
    :returns: the source
    """
    relation = canonical_name(checks.text("name", name))
    return RelationSource(relation, checks.boolean("changes", with_changes), _row, checks.boolean("stays_open", stays_open))


def _row(names: tuple[str, ...], values: tuple[Any, ...], kind: int) -> Row:
    return checked_row(list(values), names, _KINDS[kind])


def relation_sink(name: str, schema: Any, primary_key: Sequence[str] | str | None) -> RelationSink:
    """Return a sink that makes a relation of the program's pipeline.

    :param name: the name of the relation, as in SQL
    :param schema: its columns, see :func:`relation_columns`
    :param primary_key: the columns by which a later row replaces an earlier one
    :returns: the sink
    :raises StreamProgramError: if the key has a column that the schema does not have
    """
    relation, columns = canonical_name(checks.text("name", name)), relation_columns(schema)
    key = None if primary_key is None else _key(relation, columns, primary_key)
    types = tuple((column.name, column.sql_type) for column in columns)
    return _PrintedRelationSink(relation, types, RowOfElement(relation, columns, key), key)


def _key(relation: str, columns: Sequence[RelationColumn], primary_key: Sequence[str] | str) -> tuple[str, ...]:
    given = [primary_key] if isinstance(primary_key, str) else list(primary_key)
    names = tuple(canonical_name(checks.text("primary_key", each)) for each in given)
    known = [column.name for column in columns]
    unknown = [name for name in names if name not in known]
    if unknown or not names or len(set(names)) != len(names):
        raise StreamProgramError(
            f"The primary key {list(names)} of the relation {relation!r} is not possible: it consists of different columns of"
            f" {', '.join(known)}."
        )
    return names


class _PrintedRelationSink(RelationSink):
    """A sink that prints its rows if there is no pipeline."""

    def open(self, subtask: SubtaskInfo) -> SinkWriter:
        """Open a writer that prints rows as ``relation> +I[...]``."""
        return PrintSink(self.relation, self._text).open(subtask)

    def _text(self, element: Any) -> str:
        kind, values = self.to_row(element)
        fields = ", ".join(f"{name}={value!r}" for (name, _), value in zip(self.columns, values, strict=True))
        return f"{_KINDS[kind]}[{fields}]"


@dataclass(frozen=True)
class RowOfElement:
    """A function that converts an element to a row: a ``Row``, a tuple, a dict or, for one column, the value itself.

    :param relation: the name of the relation
    :param columns: the columns of the relation
    :param primary_key: the columns of the primary key; None if rows are only added
    """

    relation: str
    columns: tuple[RelationColumn, ...]
    primary_key: tuple[str, ...] | None

    def __call__(self, element: Any) -> tuple[int, tuple[Any, ...]]:
        """Return the kind of a row, and its values.

        :param element: the element
        :returns: both
        :raises StreamProgramError: if it is not a row of the relation
        """
        kind = element.get_row_kind() if isinstance(element, Row) else _INSERT
        if kind is not _INSERT and kind in _REMOVING and self.primary_key is None:
            self._refuse(
                f"only gets rows, and {element!r:.200} of kind {kind.name} would remove one: give to_relation() a primary_key,"
                " or filter such rows out"
            )
        values = self._convert_values(element, self._values(element))
        for position in self._key_positions:
            if values[position] is None:
                self._refuse(
                    f"has the primary key {', '.join(self.primary_key or ())}, and {self.columns[position].name!r} is None in"
                    f" {element!r:.200}"
                )
        return 0 if kind is _INSERT else kind.value, values

    @cached_property
    def _key_positions(self) -> tuple[int, ...]:
        return tuple(position for position, column in enumerate(self.columns) if column.name in (self.primary_key or ()))

    @cached_property
    def _converters(self) -> tuple[Converter, ...]:
        return tuple(column.convert or plain_value for column in self.columns)

    @cached_property
    def _has_types(self) -> bool:
        return any(column.convert is not None for column in self.columns)

    @cached_property
    def _positions(self) -> dict[tuple[Any, ...], tuple[int | None, ...]]:
        """The positions of the columns in elements with the same names of fields; None for a column that they do not have."""
        return {}

    def _values(self, element: Any) -> Sequence[Any]:
        if isinstance(element, Row):
            names, values = fields_of(element)
            return self._by_name(element, names, values) if names else self._by_position(element, values)
        if isinstance(element, Mapping) and (len(self.columns) > 1 or self._names_columns(element)):
            return self._by_name(element, tuple(element), list(element.values()))
        if isinstance(element, tuple) or (isinstance(element, list) and len(self.columns) > 1):
            return self._by_position(element, element)
        if len(self.columns) > 1:
            kind = type(element).__name__
            self._refuse(f"has {len(self.columns)} columns, and {element!r:.200} ({kind}) is no Row, tuple or dict")
        return (element,)

    def _names_columns(self, element: Mapping[Any, Any]) -> bool:
        known = {name for column in self.columns for name in (column.name, column.written)}
        return bool(element) and set(element) <= known

    def _by_name(self, element: Any, names: tuple[Any, ...], values: Sequence[Any]) -> Sequence[Any]:
        positions = self._positions.get(names)
        if positions is None:
            positions = self._find_positions(element, names)
            if len(self._positions) < _MOST_LAYOUTS:
                self._positions[names] = positions
        return [None if position is None else values[position] for position in positions]

    def _find_positions(self, element: Any, names: tuple[Any, ...]) -> tuple[int | None, ...]:
        used = [column.written if column.written in names else column.name for column in self.columns]
        unknown = [name for name in names if name not in used]
        if unknown:
            known = ", ".join(column.name for column in self.columns)
            self._refuse(f"has the columns {known}, and no {unknown[0]!r} as {element!r:.200} has")
        return tuple(names.index(name) if name in names else None for name in used)

    def _by_position(self, element: Any, fields: Sequence[Any]) -> Sequence[Any]:
        if len(fields) != len(self.columns):
            self._refuse(f"has {len(self.columns)} columns, and {element!r:.200} has {len(fields)} fields")
        return fields

    def _convert_values(self, element: Any, values: Sequence[Any]) -> tuple[Any, ...]:
        if not self._has_types and are_atomic(values):
            return tuple(values)
        converted = []
        try:
            for convert, value in zip(self._converters, values, strict=True):
                converted.append(convert(value))
        except TypeError as error:
            column = self.columns[len(converted)].name
            raise StreamProgramError(
                f"The relation {self.relation!r} cannot have {element!r:.200}: column {column!r}: {error}"
            ) from error
        return tuple(converted)

    def _refuse(self, why: str) -> NoReturn:
        raise StreamProgramError(f"The relation {self.relation!r} {why}.")
