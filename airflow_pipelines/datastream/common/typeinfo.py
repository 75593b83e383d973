"""``Types``: the factory of types for programs."""

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
    """The types that a program can declare for streams, keys and state. Values of every type can be None."""

    @staticmethod
    def STRING() -> TypeInformation:  # noqa: N802
        """Return the type of text: ``str``.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BYTE() -> TypeInformation:  # noqa: N802
        """Return the type of 8-bit ints; larger ones wrap.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> TypeInformation:  # noqa: N802
        """Return the type of ``bool``.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> TypeInformation:  # noqa: N802
        """Return the type of 16-bit ints; larger ones wrap.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT() -> TypeInformation:  # noqa: N802
        """Return the type of 32-bit ints; larger ones wrap.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG() -> TypeInformation:  # noqa: N802
        """Return the type of 64-bit ints; larger ones are refused.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT() -> TypeInformation:  # noqa: N802
        """Return the type of ``float``, rounded to 32 bits.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> TypeInformation:  # noqa: N802
        """Return the type of ``float``.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> TypeInformation:  # noqa: N802
        """Return the type of text of one character.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> TypeInformation:  # noqa: N802
        """Return the type of ints of any size.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> TypeInformation:  # noqa: N802
        """Return the type of ``Decimal``.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def SQL_DATE() -> TypeInformation:  # noqa: N802
        """Return the type of ``datetime.date``.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.SQL_DATE)

    @staticmethod
    def SQL_TIME() -> TypeInformation:  # noqa: N802
        """Return the type of ``datetime.time``.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.SQL_TIME)

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:  # noqa: N802
        """Return the type of ``datetime.datetime`` without a time zone.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.SQL_TIMESTAMP)

    @staticmethod
    def INSTANT() -> TypeInformation:  # noqa: N802
        """Return the type of ``Instant``; a ``datetime`` is converted to one.

        :returns: the type
        """
        return BasicTypeInfo(BasicType.INSTANT)

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:  # noqa: N802
        """Return the type of any value that can be pickled, unchanged. It applies where no type is declared.

        :returns: the type
        """
        return PickledBytesTypeInfo()

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:  # noqa: N802
        """Return the type of a list of numbers, bools or characters without None; ``bytes`` if the elements are bytes.

        :param element_type: type of the elements
        :returns: the type
        """
        return ArrayTypeInfo(ArrayKind.PRIMITIVE_ARRAY, element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:  # noqa: N802
        """Return the type of a list of values of a basic type.

        :param element_type: type of the elements
        :returns: the type
        """
        return ArrayTypeInfo(ArrayKind.BASIC_ARRAY, element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:  # noqa: N802
        """Return the type of a list of values of any type.

        :param element_type: type of the elements
        :returns: the type
        """
        return ArrayTypeInfo(ArrayKind.OBJECT_ARRAY, element_type)

    @staticmethod
    def ROW(field_types: Iterable[TypeInformation]) -> RowTypeInfo:  # noqa: N802
        """Return the type of a ``Row`` with the field names ``f0``, ``f1`` and so on.

        :param field_types: the types of the fields
        :returns: the type
        """
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Iterable[str], field_types: Iterable[TypeInformation]) -> RowTypeInfo:  # noqa: N802
        """Return the type of a ``Row`` with given field names.

        :param field_names: the names
        :param field_types: the types of the fields
        :returns: the type
        """
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Iterable[TypeInformation]) -> TupleTypeInfo:  # noqa: N802
        """Return the type of a tuple of a fixed number of fields.

        :param field_types: the types of the fields
        :returns: the type
        """
        return TupleTypeInfo(tuple(field_types))

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:  # noqa: N802
        """Return the type of a ``dict``.

        :param key_type_info: type of the keys
        :param value_type_info: type of the values
        :returns: the type
        """
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:  # noqa: N802
        """Return the type of a ``list``.

        :param element_type_info: type of the elements
        :returns: the type
        """
        return ListTypeInfo(element_type_info)
