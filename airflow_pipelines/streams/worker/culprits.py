"""Finds what exactly cannot become bytes: an error of the pickling itself names only the type."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

import cloudpickle

_DEEPEST = 30


def unpicklable(value: Any, path: str) -> str | None:
    """What in a value cannot travel.

    :param value: the value
    :param path: how it is called
    :returns: the path to the innermost object that cannot travel, None when all of it can
    """
    if _travels(value):
        return None
    seen = {id(value)}
    for _ in range(_DEEPEST):
        inner = next(((part, at) for part, at in _parts(value, path) if id(part) not in seen and not _travels(part)), None)
        if inner is None:
            break
        value, path = inner
        seen.add(id(value))
    return f"{path} (of type {type(value).__name__})"


def _travels(value: Any) -> bool:
    try:
        cloudpickle.dumps(value, 5)
    except Exception:  # noqa: BLE001 (whatever it is, this is the one)
        return False
    return True


def _parts(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    if isinstance(value, dict):
        yield from ((item, f"{path}[{key!r}]") for key, item in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((item, f"{path}[{index}]") for index, item in enumerate(value))
    elif isinstance(value, FunctionType):
        found = inspect.getclosurevars(value)
        yield from ((item, f"{name!r}, which {value.__name__}() of {path} uses") for name, item in found.nonlocals.items())
        yield from ((item, f"{name!r}, which {value.__name__}() of {path} uses") for name, item in found.globals.items())
        yield from ((item, f"a default of {value.__name__}() of {path}") for item in value.__defaults__ or ())
    elif isinstance(value, MethodType):
        yield value.__self__, path
        yield value.__func__, path
    else:
        yield from ((item, f"{path}.{name}") for name, item in getattr(value, "__dict__", {}).items())
        if not isinstance(value, type):
            yield type(value), f"the class {type(value).__name__} of {path}"
