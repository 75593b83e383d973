"""Types of values that contain others: arrays, lists, maps, rows and tuples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from airflow_pipelines.datastream.common.basic_types import BasicType, BasicTypeInfo
from airflow_pipelines.datastream.common.row import Row, RowKind, checked_row
from airflow_pipelines.datastream.common.tuples import Tuple
from airflow_pipelines.datastream.common.type_information import Converter, TypeConversionError, TypeInformation, misfit

_BYTE = BasicTypeInfo(BasicType.BYTE)
_PRIMITIVES = (
    BasicType.BOOLEAN,
    BasicType.BYTE,
    BasicType.SHORT,
    BasicType.INT,
    BasicType.LONG,
    BasicType.FLOAT,
    BasicType.DOUBLE,
    BasicType.CHAR,
)


class ArrayKind(Enum):
    """The kind of an array, which limits its elements. Each is named after its method of ``Types``."""

    PRIMITIVE_ARRAY = "PRIMITIVE_ARRAY"
    BASIC_ARRAY = "BASIC_ARRAY"
    OBJECT_ARRAY = "OBJECT_ARRAY"


@dataclass(frozen=True, repr=False)
class ArrayTypeInfo(TypeInformation):
    """The type of an array: a list of elements of one type, or ``bytes`` for a primitive array of bytes.

    :param kind: the kind: a primitive array can hold numbers, bools and characters but no None, a basic array basic types
    :param element_type: type of the elements
    """

    kind: ArrayKind
    element_type: TypeInformation

    def __post_init__(self) -> None:
        _check_types(f"Types.{self.kind.name}", [self.element_type])
        basic = self.element_type.basic_type if isinstance(self.element_type, BasicTypeInfo) else None
        if (self.kind is ArrayKind.PRIMITIVE_ARRAY and basic not in _PRIMITIVES) or (
            self.kind is ArrayKind.BASIC_ARRAY and basic is None
        ):
            raise TypeError(f"Types.{self.kind.name} cannot hold {self.element_type}: use Types.OBJECT_ARRAY({self.element_type})")

    def converter(self) -> Converter:
        """See :meth:`TypeInformation.converter`."""
        name = repr(self)
        if self.kind is ArrayKind.PRIMITIVE_ARRAY and self.element_type == _BYTE:
            return lambda value: _bytes(value, name)
        elements = _elements(name, self.element_type)
        if self.kind is not ArrayKind.PRIMITIVE_ARRAY:
            return elements
        return lambda value: _without_none(elements(value), name)

    def _text(self, value: Any) -> str:
        if isinstance(value, bytes):
            return f"[{', '.join(str(each - 256 if each > 127 else each) for each in value)}]"
        return f"[{', '.join(map(self.element_type.to_text, value))}]"

    def __repr__(self) -> str:
        return f"Types.{self.kind.name}({self.element_type!r})"


@dataclass(frozen=True, repr=False)
class ListTypeInfo(TypeInformation):
    """The type of a list of elements of one type.

    :param element_type: type of the elements
    """

    element_type: TypeInformation

    def __post_init__(self) -> None:
        _check_types("Types.LIST", [self.element_type])

    def converter(self) -> Converter:
        """See :meth:`TypeInformation.converter`."""
        return _elements(repr(self), self.element_type)

    def _text(self, value: Any) -> str:
        return f"[{', '.join(map(self.element_type.to_text, value))}]"

    def __repr__(self) -> str:
        return f"Types.LIST({self.element_type!r})"


@dataclass(frozen=True, repr=False)
class MapTypeInfo(TypeInformation):
    """The type of a dict with keys of one type and values of one type.

    :param key_type: type of the keys
    :param value_type: type of the values
    """

    key_type: TypeInformation
    value_type: TypeInformation

    def __post_init__(self) -> None:
        _check_types("Types.MAP", [self.key_type, self.value_type])

    def converter(self) -> Converter:
        """See :meth:`TypeInformation.converter`."""
        name, key_of, value_of = repr(self), self.key_type.converter(), self.value_type.converter()

        def convert(value: Any) -> Any:
            if value is None:
                return None
            if not isinstance(value, Mapping):
                raise misfit(value, name, "it takes a dict")
            return {
                _at(f"key {key!r:.40}", key_of, key): _at(f"value of key {key!r:.40}", value_of, item)
                for key, item in value.items()
            }

        return convert

    def _text(self, value: Any) -> str:
        return f"{{{', '.join(f'{self.key_type.to_text(key)}={self.value_type.to_text(item)}' for key, item in value.items())}}}"

    def __repr__(self) -> str:
        return f"Types.MAP({self.key_type!r}, {self.value_type!r})"


class RowTypeInfo(TypeInformation):
    """The type of a :class:`Row`.

    A tuple or a list is converted to a row by position. So is a row, unless it has the same field names in another order. A dict is
    converted to a row by name.

    :param field_types: the types of the fields
    :param field_names: the names of the fields; ``f0``, ``f1`` and so on if None

    >>> from airflow_pipelines.datastream.common import Types
    >>> sale = Types.ROW_NAMED(["fruit", "price"], [Types.STRING(), Types.DOUBLE()])
    >>> sale.convert(("pears", 3)), sale.convert({"price": 2})
    (Row(fruit='pears', price=3.0), Row(fruit=None, price=2.0))
    >>> sale.to_text(sale.convert(("pears", 3)))
    '+I[pears, 3.0]'
    """

    def __init__(self, field_types: Iterable[TypeInformation], field_names: Iterable[str] | None = None) -> None:
        self._types = tuple(field_types)
        self._named = field_names is not None
        self._names = tuple(f"f{i}" for i in range(len(self._types))) if field_names is None else tuple(field_names)
        _check_types(self._method, self._types)
        if len(self._names) != len(self._types):
            raise ValueError(f"Types.ROW_NAMED takes a name for each type: {len(self._names)} names, {len(self._types)} types")
        if not all(isinstance(name, str) and name for name in self._names) or len(set(self._names)) != len(self._names):
            raise ValueError(f"Types.ROW_NAMED takes field names that differ and are not empty, not {list(self._names)}")

    @property
    def _method(self) -> str:
        return "Types.ROW_NAMED" if self._named else "Types.ROW"

    def get_field_names(self) -> list[str]:
        """Return the names of the fields.

        :returns: the names, in order
        """
        return list(self._names)

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields.

        :returns: the types, in order
        """
        return list(self._types)

    def converter(self) -> Converter:
        """See :meth:`TypeInformation.converter`."""
        names, converters, name = self._names, _field_converters(self._names, self._types), repr(self)

        def convert(value: Any) -> Any:
            if isinstance(value, tuple | list):
                return checked_row(_fields(value, converters, name), names, RowKind.INSERT)
            if value is None:
                return None
            if isinstance(value, Row):
                return checked_row(_fields(_in_order(value, names), converters, name), names, value.get_row_kind())
            if isinstance(value, Mapping):
                unknown = [key for key in value if key not in names]
                if unknown:
                    raise misfit(value, name, f"it has no field {unknown[0]!r}")
                return checked_row(_fields([value.get(each) for each in names], converters, name), names, RowKind.INSERT)
            raise misfit(value, name, "it takes a Row, a tuple, a list or a dict")

        return convert

    def _text(self, value: Any) -> str:
        fields = ", ".join(type_.to_text(field) for type_, field in zip(self._types, value, strict=True))
        return f"{value.get_row_kind()}[{fields}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowTypeInfo) and (self._names, self._types) == (other._names, other._types)

    def __hash__(self) -> int:
        return hash((RowTypeInfo, self._names, self._types))

    def __repr__(self) -> str:
        types = f"[{', '.join(map(repr, self._types))}]"
        return f"{self._method}({list(self._names)}, {types})" if self._named else f"{self._method}({types})"


@dataclass(frozen=True, repr=False)
class TupleTypeInfo(TypeInformation):
    """The type of a tuple of a fixed number of fields.

    :param field_types: the types of the fields

    >>> from airflow_pipelines.datastream.common import Types
    >>> sale = Types.TUPLE([Types.STRING(), Types.DOUBLE()])
    >>> sale.convert(["pears", 3]), sale.to_text(("pears", 3.0)), sale.get_field_names()
    (('pears', 3.0), '(pears,3.0)', ['f0', 'f1'])
    """

    field_types: tuple[TypeInformation, ...]

    def __post_init__(self) -> None:
        _check_types("Types.TUPLE", self.field_types)

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields.

        :returns: the types, in order
        """
        return list(self.field_types)

    def get_field_names(self) -> list[str]:
        """Return the names of the fields.

        :returns: ``f0``, ``f1`` and so on
        """
        return [f"f{position}" for position in range(len(self.field_types))]

    def converter(self) -> Converter:
        """See :meth:`TypeInformation.converter`."""
        name, converters = repr(self), _field_converters(self.get_field_names(), self.field_types)

        def convert(value: Any) -> Any:
            if value is None:
                return None
            if isinstance(value, Tuple):
                return type(value)(*_fields(value, converters, name))
            if isinstance(value, (tuple, list, Row)):
                return tuple(_fields(value, converters, name))
            raise misfit(value, name, "it takes a tuple")

        return convert

    def _text(self, value: Any) -> str:
        return f"({','.join(type_.to_text(field) for type_, field in zip(self.field_types, value, strict=True))})"

    def __repr__(self) -> str:
        return f"Types.TUPLE([{', '.join(map(repr, self.field_types))}])"


def _check_types(method: str, types: Iterable[Any]) -> None:
    for each in types:
        if not isinstance(each, TypeInformation):
            raise TypeError(f"{method} takes types such as Types.STRING(), not {each!r:.60}")


def _at(place: str, converter: Converter, value: Any) -> Any:
    try:
        return converter(value)
    except TypeConversionError as error:
        raise error.below(place) from None


def _elements(name: str, element_type: TypeInformation) -> Converter:
    element_of = element_type.converter()

    def convert(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, (str, Mapping, Row)) or not isinstance(value, Iterable):
            raise misfit(value, name, "it takes a list")
        elements = list(value)
        try:
            return [element_of(each) for each in elements]
        except TypeConversionError:
            return [_at(f"element {position}", element_of, each) for position, each in enumerate(elements)]

    return convert


def _without_none(elements: list[Any] | None, name: str) -> list[Any] | None:
    if elements is not None and None in elements:
        raise TypeConversionError(f"{name} cannot hold None: declare Types.BASIC_ARRAY", (f"element {elements.index(None)}",))
    return elements


def _bytes(value: Any, name: str) -> Any:
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    elements = _without_none(_elements(name, _BYTE)(value), name)
    return bytes(each & 0xFF for each in elements or [])


@dataclass(frozen=True)
class _FieldConverters:
    converters: list[Converter]
    places: list[str]


def _field_converters(names: Iterable[str], types: Iterable[TypeInformation]) -> _FieldConverters:
    return _FieldConverters([type_.converter() for type_ in types], [f"field {name!r}" for name in names])


def _fields(values: Any, fields: _FieldConverters, name: str) -> list[Any]:
    converters = fields.converters
    if len(values) != len(converters):
        raise misfit(values, name, f"it has {len(converters)} fields, and the value has {len(values)}")
    try:
        return [converter(value) for converter, value in zip(converters, values, strict=True)]
    except TypeConversionError:
        # Only an error needs the places, so the values are converted again with them.
        return list(map(_at, fields.places, converters, values))


def _in_order(row: Row, names: tuple[str, ...]) -> list[Any]:
    own = row.get_field_names()
    if own == list(names) or set(own) != set(names):
        return list(row)
    return row.get_fields_by_names(names)
