"""A comparison with a fixed value, such as ``>= 100``: a predicate that can be serialised as JSON, unlike a function."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = MappingProxyType(
    {
        "<": operator.lt,
        "<=": operator.le,
        "==": operator.eq,
        "!=": operator.ne,
        ">=": operator.ge,
        ">": operator.gt,
    }
)
"""The functions of the comparison operators, by their signs."""

Comparable = float | int | str | bool


@dataclass(frozen=True)
class Comparison:
    """A comparison ``FOUND operator value`` with a fixed value.

    :param operator: one of :data:`OPERATORS`
    :param value: the right operand
    """

    operator: str
    value: Comparable

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"operator is {self.operator!r}; known: {' '.join(OPERATORS)}")
        if not isinstance(self.value, Comparable):
            # A ValueError as for all arguments, because the caller that made the argument is not known here.
            raise ValueError(  # noqa: TRY004
                f"value is {self.value!r}, which is no number, text or truth value to compare with"
            )

    def holds(self, operand: Any) -> bool:
        """Return True if the comparison holds for a value; NULL compares with nothing, as in SQL.

        :param operand: the left operand
        :raises TypeError: if the two have types that do not compare, such as a text and a number
        """
        if operand is None:
            return False
        return bool(OPERATORS[self.operator](operand, self._value_like(operand)))

    def _value_like(self, operand: Any) -> Comparable:
        """Return the value as a number if it is compared with a number, because a template always renders a text."""
        if isinstance(operand, str) is isinstance(self.value, str):
            return self.value
        try:
            if isinstance(self.value, str) and not isinstance(operand, bool):
                return float(self.value)
        except ValueError:
            pass
        raise TypeError(f"{operand!r} does not compare with {self.value!r}: one is a text, the other is none")

    def __str__(self) -> str:
        return f"{self.operator} {self.value!r}"
