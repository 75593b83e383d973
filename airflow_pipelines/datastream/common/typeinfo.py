"""``Types``: where a program gets its types from."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_pipelines.datastream.common.basic_types import BasicType, BasicTypeInfo, PickledBytesTypeInfo
from airflow_pipelines.datastream.common.composite_types import (
    ArrayKind,
    ArrayTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from airflow_pipelines.datastream.common.type_information import TypeInformation

__all__ = ["RowTypeInfo", "TupleTypeInfo", "TypeInformation", "Types"]


class Types:
    """The types that a program may declare for streams, keys and state. Values of every type may be None."""

    @staticmethod
    def STRING() -> TypeInformation:  # noqa: N802
        """Text: ``str``.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BYTE() -> TypeInformation:  # noqa: N802
        """Ints of 8 bits; larger ones wrap.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> TypeInformation:  # noqa: N802
        """``bool``.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> TypeInformation:  # noqa: N802
        """Ints of 16 bits; larger ones wrap.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT() -> TypeInformation:  # noqa: N802
        """Ints of 32 bits; larger ones wrap.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG() -> TypeInformation:  # noqa: N802
        """Ints of 64 bits; larger ones are refused.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT() -> TypeInformation:  # noqa: N802
        """``float``, rounded to 32 bits.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> TypeInformation:  # noqa: N802
        """``float``.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> TypeInformation:  # noqa: N802
        """Text of one character.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> TypeInformation:  # noqa: N802
        """Ints of any size.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> TypeInformation:  # noqa: N802
        """``Decimal``.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def SQL_DATE() -> TypeInformation:  # noqa: N802
        """``datetime.date``.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.SQL_DATE)

    @staticmethod
    def SQL_TIME() -> TypeInformation:  # noqa: N802
        """``datetime.time``.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.SQL_TIME)

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:  # noqa: N802
        """``datetime.datetime`` without a time zone.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.SQL_TIMESTAMP)

    @staticmethod
    def INSTANT() -> TypeInformation:  # noqa: N802
        """``Instant``; a ``datetime`` becomes one.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.INSTANT)

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:  # noqa: N802
        """Any value that can be pickled, unchanged: what holds without a declared type.

        :returns: the type
        """
        return PickledBytesTypeInfo()

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:  # noqa: N802
        """A list of numbers, bools or characters without None; ``bytes`` when the elements are bytes.

        :param element_type: type of the elements
        :returns: the type
        """
        return ArrayTypeInfo(ArrayKind.PRIMITIVE_ARRAY, element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:  # noqa: N802
        """A list of values of a basic type.

        :param element_type: type of the elements
        :returns: the type
        """
        return ArrayTypeInfo(ArrayKind.BASIC_ARRAY, element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:  # noqa: N802
        """A list of values of any type.

        :param element_type: type of the elements
        :returns: the type
        """
        return ArrayTypeInfo(ArrayKind.OBJECT_ARRAY, element_type)

    @staticmethod
    def ROW(field_types: Iterable[TypeInformation]) -> RowTypeInfo:  # noqa: N802
        """A ``Row`` with the field names ``f0``, ``f1`` and so on.

        :param field_types: the types of the fields
        :returns: the type
        """
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Iterable[str], field_types: Iterable[TypeInformation]) -> RowTypeInfo:  # noqa: N802
        """A ``Row`` with given field names.

        :param field_names: the names
        :param field_types: the types of the fields
        :returns: the type
        """
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Iterable[TypeInformation]) -> TupleTypeInfo:  # noqa: N802
        """A tuple of a fixed number of fields.

        :param field_types: the types of the fields
        :returns: the type
        """
        return TupleTypeInfo(tuple(field_types))

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:  # noqa: N802
        """A ``dict``.

        :param key_type_info: type of the keys
        :param value_type_info: type of the values
        :returns: the type
        """
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:  # noqa: N802
        """A ``list``.

        :param element_type_info: type of the elements
        :returns: the type
        """
        return ListTypeInfo(element_type_info)
