"""The mapping of columns of a query or a table to those of a relation, and of texts to values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.postgresql.options import InvalidValues
from airflow_pipelines.connectors.transports.postgresql.source_types import SourceType
from airflow_pipelines.connectors.transports.postgresql.values import FromText, json_value
from airflow_pipelines.rows.formats.parsed import RecordProblem
from airflow_pipelines.rows.formats.rows import RowReader
from airflow_pipelines.rows.schema import Column, RelationSchema


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column of a relation and the column that fills it.

    :param column: the column of the relation
    :param name: the name of the source's column
    :param source: the type of the source
    :param from_text: a function that reads the source's texts
    :param check: a function that raises a :class:`RecordProblem` for a value that the column does not take, if such values become
        NULL; None if they do not
    """

    column: Column
    name: str
    source: SourceType
    from_text: FromText
    check: Callable[[Any], Any] | None = None

    def value(self, text: str | None) -> Any:
        """Return the value that JSON would have in place of a text.

        :param text: the text; None for NULL
        :raises RecordProblem: when no value has it
        """
        if text is None:
            return None
        try:
            value = self.from_text(text)
            if self.check is not None:
                self.check(value)
        except RecordProblem as problem:
            if self.check is not None:
                return None
            raise RecordProblem(f"column {self.column.name!r}: {problem}") from problem
        return value


def mapped_columns(
    schema: RelationSchema, reader: RowReader, source: Sequence[tuple[str, SourceType]], where: str, invalid: InvalidValues
) -> dict[int, MappedColumn]:
    """Return the mapping of each column of a source that a relation has, by its number in the source.

    :param schema: the schema of the relation
    :param reader: the reader of the relation's rows
    :param source: the names and types of the source's columns
    :param where: the description of the source, for messages
    :param invalid: the treatment of values that the type of their column does not have
    :raises ConnectorFailure: when a type does not fit, a name is there twice, or a column must be filled that the source lacks
    """
    mapped: dict[int, MappedColumn] = {}
    filled: dict[int, str] = {}
    for number, (name, of) in enumerate(source):
        place = reader.place(name)
        if place is None:
            continue
        column = schema.columns[place]
        if place in filled:
            raise ConnectorFailure(
                f"{where}: columns {filled[place]!r} and {name!r} both are column {column.name!r}; give one another name"
            )
        problem = of.problem(column.type)
        if problem is not None:
            raise ConnectorFailure(
                f"{where}: column {name!r}: {problem}. Change the type of column {column.name!r}, or read what fits: "
                "a query may cast, as in column::text."
            )
        filled[place] = name
        is_null = invalid is InvalidValues.NULL and column.type.nullable and column.name not in schema.primary_key
        check = reader.converter(place) if is_null else None
        mapped[number] = MappedColumn(column, name, of, json_value(of, column.type), check)
    _check_missing(schema, filled, [name for name, _ in source], where)
    return mapped


def _check_missing(schema: RelationSchema, filled: Mapping[int, str], given: Sequence[str], where: str) -> None:
    for place, column in enumerate(schema.columns):
        if place not in filled and column.default is None and not column.type.nullable:
            listed = ", ".join(given) or "none"
            raise ConnectorFailure(
                f"{where}: there is no column {column.name!r}, which is NOT NULL and has no DEFAULT. Its columns: {listed}"
            )
