"""Tuples of a fixed number of fields ``f0``, ``f1`` and so on. A program can always use ordinary Python tuples instead."""

from __future__ import annotations

from typing import Any, Self


class Tuple(tuple[Any, ...]):
    """The base class of ``Tuple0`` to ``Tuple25``: a tuple whose fields can also be read as ``f0``, ``f1`` and so on.

    :param fields: the values, one for each field of the class
    :raises TypeError: if there are more or fewer
    """

    __slots__ = ()
    _ARITY: int | None = None

    def __new__(cls, *fields: Any) -> Self:
        """Make the tuple of some values."""
        if cls._ARITY is not None and len(fields) != cls._ARITY:
            raise TypeError(f"{cls.__name__} takes {cls._ARITY} values, not {len(fields)}")
        return super().__new__(cls, fields)

    def get_arity(self) -> int:
        """Return the number of fields.

        :returns: the number
        """
        return len(self)

    def get_field(self, pos: int) -> Any:
        """Return the value of a field.

        :param pos: its position, from 0
        :returns: the value
        """
        return self[pos]

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "f" and name[1:].isdecimal() and int(name[1:]) < len(self):
            return self[int(name[1:])]
        raise AttributeError(f"{type(self).__name__} has no field {name!r}: its fields are f0 to f{len(self) - 1}")

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


class Tuple0(Tuple):
    """A tuple without fields."""

    __slots__ = ()
    _ARITY = 0


class Tuple1(Tuple):
    """A tuple of 1 field."""

    __slots__ = ()
    _ARITY = 1


class Tuple2(Tuple):
    """A tuple of 2 fields."""

    __slots__ = ()
    _ARITY = 2


class Tuple3(Tuple):
    """A tuple of 3 fields."""

    __slots__ = ()
    _ARITY = 3


class Tuple4(Tuple):
    """A tuple of 4 fields."""

    __slots__ = ()
    _ARITY = 4


class Tuple5(Tuple):
    """A tuple of 5 fields."""

    __slots__ = ()
    _ARITY = 5


class Tuple6(Tuple):
    """A tuple of 6 fields."""

    __slots__ = ()
    _ARITY = 6


class Tuple7(Tuple):
    """A tuple of 7 fields."""

    __slots__ = ()
    _ARITY = 7


class Tuple8(Tuple):
    """A tuple of 8 fields."""

    __slots__ = ()
    _ARITY = 8


class Tuple9(Tuple):
    """A tuple of 9 fields."""

    __slots__ = ()
    _ARITY = 9


class Tuple10(Tuple):
    """A tuple of 10 fields."""

    __slots__ = ()
    _ARITY = 10


class Tuple11(Tuple):
    """A tuple of 11 fields."""

    __slots__ = ()
    _ARITY = 11


class Tuple12(Tuple):
    """A tuple of 12 fields."""

    __slots__ = ()
    _ARITY = 12


class Tuple13(Tuple):
    """A tuple of 13 fields."""

    __slots__ = ()
    _ARITY = 13


class Tuple14(Tuple):
    """A tuple of 14 fields."""

    __slots__ = ()
    _ARITY = 14


class Tuple15(Tuple):
    """A tuple of 15 fields."""

    __slots__ = ()
    _ARITY = 15


class Tuple16(Tuple):
    """A tuple of 16 fields."""

    __slots__ = ()
    _ARITY = 16


class Tuple17(Tuple):
    """A tuple of 17 fields."""

    __slots__ = ()
    _ARITY = 17


class Tuple18(Tuple):
    """A tuple of 18 fields."""

    __slots__ = ()
    _ARITY = 18


class Tuple19(Tuple):
    """A tuple of 19 fields."""

    __slots__ = ()
    _ARITY = 19


class Tuple20(Tuple):
    """A tuple of 20 fields."""

    __slots__ = ()
    _ARITY = 20


class Tuple21(Tuple):
    """A tuple of 21 fields."""

    __slots__ = ()
    _ARITY = 21


class Tuple22(Tuple):
    """A tuple of 22 fields."""

    __slots__ = ()
    _ARITY = 22


class Tuple23(Tuple):
    """A tuple of 23 fields."""

    __slots__ = ()
    _ARITY = 23


class Tuple24(Tuple):
    """A tuple of 24 fields."""

    __slots__ = ()
    _ARITY = 24


class Tuple25(Tuple):
    """A tuple of 25 fields."""

    __slots__ = ()
    _ARITY = 25
