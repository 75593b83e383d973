"""The names under which the fields of a table are read: those that they had at first, even if the table renames them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType


class FieldNames:
    """The names of fields by their ids, by which a table knows its columns even after they are renamed.

    :param known: the names that fields had before, by their ids as texts
    :param takes: a function that returns True if the table in the pipeline has a column of a name
    """

    def __init__(self, known: Mapping[str, str], takes: Callable[[str], bool]) -> None:
        self._names = {int(field_id): name for field_id, name in known.items()}
        self._takes = takes

    def see(self, schema: Schema) -> None:
        """Remember the names of fields that were not seen before.

        :param schema: the schema of the table, or of one of its snapshots
        """
        for field in _all_fields(schema.fields):
            self._names.setdefault(field.field_id, field.name)

    def to_position(self) -> dict[str, str]:
        """Return the stored form."""
        return {str(field_id): name for field_id, name in sorted(self._names.items())}

    def of(self, schema: Schema) -> Schema:
        """Return the columns of a schema that are read, under the names that they had at first.

        :param schema: the schema of a snapshot
        :returns: the columns for which the table in the pipeline has columns
        """
        fields: dict[str, NestedField] = {}
        # A column that takes over the name of a renamed one is a different column.
        for field in sorted(schema.fields, key=lambda field: field.field_id):
            first = self._names.get(field.field_id, field.name)
            name = first if self._takes(first) else field.name
            if self._takes(name):
                fields.setdefault(name.lower(), self._rename(field, name))
        places = {field.field_id: place for place, field in enumerate(schema.fields)}
        return Schema(*sorted(fields.values(), key=lambda field: places[field.field_id]), schema_id=schema.schema_id)

    def _rename(self, field: NestedField, name: str) -> NestedField:
        return NestedField(
            field_id=field.field_id,
            name=name,
            field_type=self._type(field.field_type),
            required=field.required,
            initial_default=field.initial_default,
        )

    def _type(self, kind: IcebergType) -> IcebergType:
        """Return a type whose inner fields have the names that they had at first."""
        match kind:
            case StructType():
                return StructType(*(self._rename(field, self._names.get(field.field_id, field.name)) for field in kind.fields))
            case ListType():
                return ListType(kind.element_id, self._type(kind.element_type), kind.element_required)
            case MapType():
                key, value = self._type(kind.key_type), self._type(kind.value_type)
                return MapType(kind.key_id, key, kind.value_id, value, kind.value_required)
        return kind


def _all_fields(fields: tuple[NestedField, ...]) -> Iterator[NestedField]:
    for field in fields:
        yield field
        yield from _all_fields(_inner_fields(field.field_type))


def _inner_fields(kind: IcebergType) -> tuple[NestedField, ...]:
    match kind:
        case StructType():
            return kind.fields
        case ListType():
            return _inner_fields(kind.element_type)
        case MapType():
            return (*_inner_fields(kind.key_type), *_inner_fields(kind.value_type))
    return ()
