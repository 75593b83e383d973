"""Descriptions of invalid configurations, which name the fields and never repeat their values, since these may be secrets."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails


@dataclass(frozen=True, slots=True)
class Mistake:
    """An invalid value.

    :param path: the names of the enclosing sections and of the field, separated by dots
    :param text: a description of the mistake, with the path
    """

    path: str
    text: str


def mistakes(model: type[BaseModel], error: ValidationError) -> list[Mistake]:
    """Describe why a configuration was rejected.

    :param model: the model that rejected it
    :param error: the error that the model raised
    :returns: one entry per invalid value
    """
    items = error.errors(include_url=False, include_input=False, include_context=False)
    return [Mistake(_path(item), _describe_error(model, item)) for item in items]


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a field that is a section of its own; None for a field with a value."""
    kinds = getattr(field.annotation, "__args__", (field.annotation,))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _path(item: ErrorDetails) -> str:
    return ".".join(str(part) for part in item["loc"])


def _describe_error(model: type[BaseModel], item: ErrorDetails) -> str:
    if item["type"] != "extra_forbidden":
        return f"{_path(item)}: {item['msg']}"
    beside: type[BaseModel] | None = model
    for name in item["loc"][:-1]:
        beside = None if beside is None else section_of(beside.model_fields[str(name)])
    known = "" if beside is None else f"; known: {', '.join(sorted(beside.model_fields))}"
    return f"{_path(item)}: unknown key{known}"
