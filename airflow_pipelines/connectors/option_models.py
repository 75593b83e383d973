"""Validation of options against their models, with messages that name the problem and the valid alternatives."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from airflow_pipelines.common.references import has_reference
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError, UnknownOptionError

Options = TypeVar("Options", bound=BaseModel)
_CERTAIN: Final = frozenset({"missing", "extra_forbidden"})
"""The types of errors that do not depend on the value of an option."""
_MOST_LISTED: Final = 20
"""The maximum number of names in a message; of more, it lists only the nearest ones."""


def read_options(model: type[Options], config: Mapping[str, Any], of: str, where: str) -> Options:
    """Return validated options that have no references.

    :param model: the model of the options
    :param config: the options as given
    :param of: the owner of the options, for messages; empty for the options of every connector
    :param where: the object that is being set up, for messages
    :raises UnknownOptionError: if an option is unknown or missing, or a value is invalid
    """
    try:
        return model.model_validate(dict(config))
    except ValidationError as error:
        raise _make_option_error(error.errors(), model, of, where) from None


def read_declared_options(model: type[Options], config: Mapping[str, Any], of: str, where: str) -> Options | None:
    """Return validated options that can contain references, whose values are not known yet.

    :param model: the model of the options
    :param config: the options as declared
    :param of: the owner of the options, for messages
    :param where: the object that is being set up, for messages
    :returns: the options; None if they cannot be known before the references are replaced
    :raises UnknownOptionError: if something is wrong whatever the values of the references are
    """
    try:
        return model.model_validate(dict(config))
    except ValidationError as error:
        certain = [detail for detail in error.errors() if detail["type"] in _CERTAIN or not has_reference(detail.get("input"))]
        if certain:
            raise _make_option_error(certain, model, of, where) from None
        return None


def unknown(what: str, name: str, known: Iterable[str], of: str = "") -> str:
    """Return the message about a name that does not exist.

    :param what: the kind of the name
    :param name: the name as given
    :param known: the existing names
    :param of: the owner of the names
    """
    names = sorted(known)
    # In a nested option, the last part is the wrong one; but names of properties contain points themselves.
    parts = (name.lower().rpartition(".")[2], name.lower())
    close = [match for part in parts for match in difflib.get_close_matches(part, names, n=1)]
    hint = f"; did you mean {close[0]!r}?" if close else ""
    if len(names) > _MOST_LISTED:
        nearest = difflib.get_close_matches(name.lower(), names, n=_MOST_LISTED, cutoff=0)[:_MOST_LISTED]
        return f"unknown {what} {name!r}{of}; of {len(names)} known {what}s the nearest: {', '.join(sorted(nearest))}{hint}"
    listed = ", ".join(names) if names else "none"
    return f"unknown {what} {name!r}{of}; known {what}s: {listed}{hint}"


def _make_option_error(errors: Sequence[ErrorDetails], model: type[BaseModel], of: str, where: str) -> UnknownOptionError:
    # A misspelt option often makes another one missing, so it is reported first.
    problem = min(errors, key=lambda detail: detail["type"] != "extra_forbidden")
    place = ".".join(str(part) for part in problem["loc"] if not isinstance(part, int)) or "value"
    suffix = f" of {of}" if of else ""
    if problem["type"] == "extra_forbidden":
        known = _names(_model_at(model, problem["loc"][:-1]))
        return UnknownOptionError(f"{where}: {unknown('option', place, known, suffix)}", place)
    if problem["type"] == "missing":
        return InvalidOptionError(f"{where}: option {place!r}{suffix} is missing")
    # The value is left out: it may hold a password.
    return InvalidOptionError(f"{where}: option {place!r}{suffix}: {problem['msg']}", place)


def _names(model: type[BaseModel]) -> Iterator[str]:
    """Yield the names of options as programs write them."""
    for name, field in model.model_fields.items():
        yield field.alias or name


def _model_at(model: type[BaseModel], place: Sequence[int | str]) -> type[BaseModel]:
    """Return the model of the nested options at a path in ``model``, whose parts are names of options and columns, and numbers."""
    for part in place:
        if isinstance(part, str):
            fields = {field.alias or name: field for name, field in model.model_fields.items()}
            if part in fields:
                model = next(_models_in(fields[part].annotation), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
