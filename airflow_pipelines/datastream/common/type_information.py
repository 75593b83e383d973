"""The base class of types, which coerce values and write them as text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.streams.errors import ExplainedError

Converter = Callable[[Any], Any]


class TypeConversionError(ExplainedError, TypeError):
    """A value that does not fit its declared type.

    :param reason: the mismatch, and a remedy
    :param path: the path to the part of the value, outermost first, such as ``("field 'age'", "element 3")``
    """

    def __init__(self, reason: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(reason, path)
        self.reason = reason
        self.path = path

    def below(self, place: str) -> TypeConversionError:
        """Return the same error for the value that contains the one it is about.

        :param place: the place of the value in the container
        :returns: the error to raise
        """
        return TypeConversionError(self.reason, (place, *self.path))

    def __str__(self) -> str:
        return f"{', '.join(self.path)}: {self.reason}" if self.path else self.reason


class TypeInformation(ABC):
    """The type of a stream's elements, of keys or of state.

    No type has to be declared. A declared type coerces values (a tuple becomes the declared row, an ``int`` the ``float``), reports
    values that do not fit, and decides how results are printed.

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.common import Types
    >>> prices = Types.MAP(Types.STRING(), Types.DOUBLE())
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> stream = env.from_collection([{"pears": 3}, None], prices).print("prices")
    >>> result = env.execute()
    prices> {pears=3.0}
    prices> null
    """

    @abstractmethod
    def converter(self) -> Converter:
        """Return the function that coerces a value to this type. None stays None.

        :returns: a function of one value, which raises :class:`TypeConversionError` for a value that does not fit
        """

    @abstractmethod
    def _text(self, value: Any) -> str:
        """Return a value of this type as text. It is never called with None."""

    def convert(self, value: Any) -> Any:
        """Coerce a value to this type.

        :param value: the value, or None
        :returns: the coerced value
        :raises TypeConversionError: if it does not fit
        """
        return self.converter()(value)

    def to_text(self, value: Any) -> str:
        """Return a value of this type as the text that ``print`` and text sinks write.

        :param value: a coerced value, or None
        :returns: the text; ``null`` for None
        """
        return "null" if value is None else self._text(value)

    def __str__(self) -> str:
        return repr(self)


def misfit(value: Any, type_: str, takes: str) -> TypeConversionError:
    """Return the error for a value that does not fit its type.

    :param value: the value
    :param type_: the type, as a program writes it
    :param takes: the values that the type accepts, and a remedy
    :returns: the error to raise
    """
    return TypeConversionError(f"{type_} does not take {value!r:.80} ({type(value).__name__}): {takes}")


def converter_of(parameter: str, declared: Any) -> Converter:
    """Return the function that coerces values to a declared type.

    :param parameter: the parameter that the program gives the type for
    :param declared: the type
    :returns: see :meth:`TypeInformation.converter`
    :raises TypeError: if it is not a type
    """
    type_: TypeInformation = checks.instance(parameter, declared, TypeInformation, "use one of Types, such as Types.INT()")
    return type_.converter()
