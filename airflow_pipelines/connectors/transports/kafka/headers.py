"""Conditions on the headers of records."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
"""The headers of a record, in order."""
_KINDS: Final = ("header", "and", "or", "not")
_UNKNOWN: Final = (
    'a condition is {"header": {"name": ..., "pattern": ...}}, {"and": [...]}, {"or": [...]} or {"not": ...} with conditions inside'
)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class HeaderPattern(_Model):
    """A pattern for the values of a header.

    :param name: the name of the header
    :param pattern: a regular expression that fits a whole value
    """

    name: str
    pattern: str

    @field_validator("pattern")
    @classmethod
    def _is_regular_expression(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"it is no regular expression: {error}") from error
        return value

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def fits(self, headers: Headers) -> bool:
        """Return True if a value of the header matches: one of them is enough if the header occurs more than once.

        :param headers: the headers of a record
        """
        return any(name == self.name and self._compiled.fullmatch(_as_text(value)) is not None for name, value in headers)


class HeaderFits(_Model):
    """The condition that a header has a value."""

    header: HeaderPattern

    def accepts(self, headers: Headers) -> bool:
        """Return True if the condition holds for the headers of a record."""
        return self.header.fits(headers)


class AllOf(_Model):
    """The condition that several conditions hold."""

    conditions: tuple[HeaderCondition, ...] = Field(alias="and")

    def accepts(self, headers: Headers) -> bool:
        """Return True if all conditions hold for the headers of a record."""
        return all(condition.accepts(headers) for condition in self.conditions)


class AnyOf(_Model):
    """The condition that one of several conditions holds."""

    conditions: tuple[HeaderCondition, ...] = Field(alias="or")

    def accepts(self, headers: Headers) -> bool:
        """Return True if one of the conditions holds for the headers of a record."""
        return any(condition.accepts(headers) for condition in self.conditions)


class Not(_Model):
    """The condition that another condition does not hold."""

    condition: HeaderCondition = Field(alias="not")

    def accepts(self, headers: Headers) -> bool:
        """Return True if the other condition does not hold for the headers of a record."""
        return not self.condition.accepts(headers)


def _kind_of(given: Any) -> str | None:
    if isinstance(given, Mapping) and len(given) == 1:
        (kind,) = given
        return kind if kind in _KINDS else None
    return None


HeaderCondition: TypeAlias = Annotated[
    Annotated[HeaderFits, Tag("header")] | Annotated[AllOf, Tag("and")] | Annotated[AnyOf, Tag("or")] | Annotated[Not, Tag("not")],
    Discriminator(_kind_of, custom_error_type="header_condition", custom_error_message=_UNKNOWN),
]
"""A condition on the headers of a record."""

for _model in (AllOf, AnyOf, Not):
    _model.model_rebuild()


def _as_text(value: bytes | None) -> str:
    """Return a value as text; bytes that are not UTF-8 stay different from all characters of a text."""
    return (value or b"").decode(errors="surrogateescape")
