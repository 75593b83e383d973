"""Search for the exact part of a program that cannot be pickled for its process, including the variables that functions use."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

import cloudpickle

from airflow_pipelines.streams.culprits import innermost, parts_of


def unpicklable(value: Any, path: str) -> str | None:
    """Return the path to the part of a value that cannot be pickled.

    :param value: the value
    :param path: the name of the value
    :returns: the path to the innermost object that cannot be pickled, None if everything can
    """
    try:
        cloudpickle.dumps(value, 5)
    except Exception:  # noqa: BLE001 (whatever it is, what causes it is looked for)
        inner_path, part = innermost(value, path, cloudpickle.dumps, _parts)
        return f"{inner_path} (of type {type(part).__name__})"
    return None


def _parts(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    if isinstance(value, FunctionType):
        variables = inspect.getclosurevars(value)
        yield from ((item, f"{name!r}, which {value.__name__}() of {path} uses") for name, item in variables.nonlocals.items())
        yield from ((item, f"{name!r}, which {value.__name__}() of {path} uses") for name, item in variables.globals.items())
        yield from ((item, f"a default of {value.__name__}() of {path}") for item in value.__defaults__ or ())
    elif isinstance(value, MethodType):
        yield value.__self__, path
        yield value.__func__, path
    else:
        yield from parts_of(value, path)
        if not isinstance(value, type | dict | list | tuple | set | frozenset):
            yield type(value), f"the class {type(value).__name__} of {path}"
