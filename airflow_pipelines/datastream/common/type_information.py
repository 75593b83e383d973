"""What a type is: how values are coerced to it, and how they are written as text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.streams.errors import ExplainedError

Converter = Callable[[Any], Any]


class TypeConversionError(ExplainedError, TypeError):
    """A value does not fit the type that a program declares.

    :param reason: what does not fit, and what to do
    :param path: where in the value, outermost first, such as ``("field 'age'", "element 3")``
    """

    def __init__(self, reason: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def below(self, place: str) -> TypeConversionError:
        """The same error, seen from the value that contains the one it is about.

        :param place: where the value is in that
        :returns: the error to raise
        """
        return TypeConversionError(self.reason, (place, *self.path))

    def __str__(self) -> str:
        return f"{', '.join(self.path)}: {self.reason}" if self.path else self.reason


class TypeInformation(ABC):
    """The type of a stream's elements, of keys or of state.

    No type has to be declared. One that is declared coerces values (a tuple becomes the row that was declared, an ``int`` the
    ``float``), says where one does not fit, and decides how results are printed.
    """

    @abstractmethod
    def converter(self) -> Converter:
        """The function that coerces a value to this type; None stays None.

        :returns: a function of one value, which raises :class:`TypeConversionError` for a value that does not fit
        """

    @abstractmethod
    def _text(self, value: Any) -> str:
        """A value of this type as text; never called with None."""

    def convert(self, value: Any) -> Any:
        """Coerce a value to this type.

        :param value: the value, or None
        :returns: the coerced value
        :raises TypeConversionError: when it does not fit
        """
        return self.converter()(value)

    def to_text(self, value: Any) -> str:
        """A value of this type as ``print`` and sinks of text write it.

        :param value: a coerced value, or None
        :returns: the text; ``null`` for None
        """
        return "null" if value is None else self._text(value)

    def __str__(self) -> str:
        return repr(self)


def misfit(value: Any, type_: str, takes: str) -> TypeConversionError:
    """The error of a value that does not fit.

    :param value: the value
    :param type_: the type, as a program writes it
    :param takes: what the type takes, and what to do instead
    :returns: the error to raise
    """
    return TypeConversionError(f"{type_} does not take {value!r:.80} ({type(value).__name__}): {takes}")


def converter_of(parameter: str, declared: Any) -> Converter:
    """What coerces values to the type that a program declares.

    :param parameter: what the program gives the type for
    :param declared: the type
    :returns: see :meth:`TypeInformation.converter`
    :raises TypeError: when it is no type
    """
    type_: TypeInformation = checks.instance(parameter, declared, TypeInformation, "use one of Types, such as Types.INT()")
    return type_.converter()
