"""The conversion of a record to a row: columns by name or position, NULL, DEFAULT and NOT NULL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import pyarrow as pa

from airflow_pipelines.rows.formats import jsontext
from airflow_pipelines.rows.formats.converting import Converter
from airflow_pipelines.rows.formats.defaults import ColumnDefaults, Now, wall_clock
from airflow_pipelines.rows.formats.flavors import DEFAULT_FORMS, ValueForms
from airflow_pipelines.rows.formats.parsed import RecordProblem, excerpt
from airflow_pipelines.rows.formats.values import is_null_text, json_converter, text_converter
from airflow_pipelines.rows.schema import RelationSchema


class RowReader:
    """A reader of rows of one table from parsed JSON objects, JSON arrays and lists of texts."""

    def __init__(self, schema: RelationSchema, forms: ValueForms = DEFAULT_FORMS, now: Now = wall_clock) -> None:
        """Make a reader.

        :param schema: the table
        :param forms: the forms of JSON values besides the default ones
        :param now: the clock that a DEFAULT may read
        """
        self.columns = schema.columns
        self._from_json = [json_converter(column.type, forms) for column in schema.columns]
        self._from_text = [text_converter(column.type) for column in schema.columns]
        self._defaults = ColumnDefaults(schema, now)
        self._key = [place for place, column in enumerate(schema.columns) if column.name in schema.primary_key]
        self._places = {column.name: place for place, column in enumerate(schema.columns) if column.case_sensitive}
        self._folded = {column.name.lower(): place for place, column in enumerate(schema.columns) if not column.case_sensitive}

    def place(self, name: str) -> int | None:
        """Return the number of the column with a name, compared exactly for a quoted column, and in any case for others."""
        place = self._places.get(name)
        return self._folded.get(name.lower()) if place is None else place

    def converter(self, place: int) -> Converter:
        """Return the converter of a column from JSON values.

        :param place: the column's number
        """
        return self._from_json[place]

    def begin(self, metadata: pa.Table | None = None) -> None:
        """Begin another batch of records, whose DEFAULTs have a time of their own.

        :param metadata: a connector's metadata of each record, one column for each name; None if it has none
        """
        self._defaults.begin(metadata)

    def at(self, number: int) -> None:
        """Move to a record of the batch, whose metadata DEFAULTs read from now on.

        :param number: the number of the record
        """
        self._defaults.at(number)

    @property
    def described(self) -> Set[str]:
        """The columns whose DEFAULT reads the metadata of the batch; none if it has no metadata."""
        return self._defaults.described

    def described_array(self, name: str, numbers: Sequence[int], kind: pa.DataType) -> pa.Array | None:
        """Evaluate a column of :attr:`described` for records that do not name it, or return None if they must be read one by one.

        :param name: the column's name
        :param numbers: the numbers of the records
        :param kind: the column's type
        """
        place = next(place for place, column in enumerate(self.columns) if column.name == name)
        values = self._defaults.described_values(place, numbers)
        return None if values is None else pa.array(values, kind)

    def row(self, record: Any) -> list[Any]:
        """Convert a JSON object or array to a whole row.

        :raises RecordProblem: when it does not fit
        """
        if isinstance(record, dict):
            values = self._index_by_place(record)
            row = [
                self._read(place, values[place], self._from_json[place]) if place in values else None
                for place in range(len(self.columns))
            ]
            if len(values) < len(row):
                self._defaults.fill(row, (place for place in range(len(row)) if place not in values))
            return row
        return self._read_positional(record)

    def key(self, record: Any) -> list[Any]:
        """Convert the record of a delete. Missing columns get their DEFAULT if it is constant or from metadata, else NULL.

        :raises RecordProblem: when it does not fit
        """
        if isinstance(record, dict):
            values = self._index_by_place(record)
            row = [
                self._read(place, values[place], self._from_json[place]) if place in values else None
                for place in range(len(self.columns))
            ]
            self._defaults.fill_deleted(row, (place for place in range(len(row)) if place not in values))
            self._check_key(row, "a delete")
            return row
        return self._read_positional(record)

    def update(self, record: Any) -> tuple[list[Any], list[str]]:
        """Convert the record of an update to a row, with NULL for missing values, and the names of the columns that are given.

        :raises RecordProblem: when it does not fit
        """
        if not isinstance(record, dict):
            raise RecordProblem("an update must be an object that names its columns")
        values = self._index_by_place(record)
        row: list[Any] = [None] * len(self.columns)
        for place, value in values.items():
            row[place] = self._read(place, value, self._from_json[place])
        self._check_key(row, "an update")
        return row, [self.columns[place].name for place in sorted(values)]

    def text_row(self, fields: Sequence[str], order: Sequence[int | None]) -> list[Any]:
        """Convert a list of texts to a row; texts without a column are ignored.

        :param fields: the texts
        :param order: for each column the number of its text; None for one that is not named, and has its DEFAULT
        :raises RecordProblem: when it does not fit
        """
        row: list[Any] = []
        for place, (column, number) in enumerate(zip(self.columns, order, strict=True)):
            if number is None:
                row.append(None)
                continue
            if number >= len(fields):
                raise RecordProblem(f"{len(fields)} fields, but column {column.name!r} is number {number + 1}")
            text = fields[number]
            null = not column.type.is_text and is_null_text(text)
            row.append(self._read(place, None if null else text, self._from_text[place]))
        self._defaults.fill(row, (place for place, number in enumerate(order) if number is None))
        return row

    def shown_key(self, record: Mapping[str, Any]) -> str:
        """Return the primary key that a record names, for a message about it: empty if the table has none.

        :param record: JSON values by the names of columns
        """
        names = [self.columns[place].name for place in self._key]
        return ", ".join(f"{name} = {excerpt(jsontext.dumps_for_message(record.get(name)), 60)}" for name in names)

    def _check_key(self, row: Sequence[Any], what: str) -> None:
        """Check that a change has the primary key of its row.

        :raises RecordProblem: when it does not
        """
        missing = [self.columns[place].name for place in self._key if row[place] is None]
        if missing:
            listed = ", ".join(repr(name) for name in missing)
            raise RecordProblem(f"column {listed} is missing: {what} must give the whole primary key")

    def _index_by_place(self, record: Mapping[str, Any]) -> dict[int, Any]:
        values = {}
        for name, value in record.items():
            place = self.place(name)
            if place is not None:
                values[place] = value
        return values

    def _read_positional(self, record: Any) -> list[Any]:
        if not isinstance(record, list):
            raise RecordProblem("a row must be an object or an array of its columns' values")
        if len(record) < len(self.columns):
            raise RecordProblem(f"{len(record)} values, but the table has {len(self.columns)} columns")
        return [self._read(place, record[place], convert) for place, convert in enumerate(self._from_json)]

    def _read(self, place: int, value: Any, convert: Converter) -> Any:
        column = self.columns[place]
        try:
            if value is not None:
                # JSON text in a CSV field may itself be null.
                value = convert(value)
        except RecordProblem as problem:
            raise RecordProblem(f"column {column.name!r}: {problem}") from None
        if value is None and not column.type.nullable:
            raise RecordProblem(f"column {column.name!r} is NOT NULL, but the value is null")
        return value
