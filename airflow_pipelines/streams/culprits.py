"""Search for the part of a value that cannot be copied or pickled. The error itself names at most the type of the part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

Parts: TypeAlias = Callable[[Any, str], Iterable[tuple[Any, str]]]
"""A function that returns the parts of a value, each with its path, given the value and the path to it."""
_DEEPEST = 30


def culprit(value: Any, attempt: Callable[[Any], Any]) -> tuple[str, Any]:
    """Return the innermost object that makes an operation fail for a value.

    :param value: a value for which the operation fails
    :param attempt: the operation, which raises an error if it fails
    :returns: the path to the object, such as ``.client['a'][0]``, and the object
    """
    return innermost(value, "", attempt, parts_of)


def innermost(value: Any, path: str, attempt: Callable[[Any], Any], parts: Parts) -> tuple[str, Any]:
    """Return the innermost object that makes an operation fail, for values whose parts another function finds.

    :param value: a value for which the operation fails
    :param path: the path to it
    :param attempt: the operation, which raises an error if it fails
    :param parts: the function that returns the parts of a value
    :returns: the path to the object, and the object
    """
    # The objects are kept alive, so that no other object can get the id of one that was visited.
    seen = {id(value): value}
    for _ in range(_DEEPEST):
        inner = next(((part, at) for part, at in parts(value, path) if id(part) not in seen and not _works(attempt, part)), None)
        if inner is None:
            break
        value, path = inner
        seen[id(value)] = value
    return path, value


def parts_of(value: Any, path: str) -> list[tuple[Any, str]]:
    """Return the parts of a value: the values of a dict, the items of a collection, or the attributes of an object.

    :param value: the value
    :param path: the path to it
    :returns: the parts, each with the path to it
    """
    if isinstance(value, dict):
        return [(item, f"{path}[{key!r}]") for key, item in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(item, f"{path}[{index}]") for index, item in enumerate(value)]
    return [(item, f"{path}.{name}") for name, item in getattr(value, "__dict__", {}).items()]


def _works(attempt: Callable[[Any], Any], value: Any) -> bool:
    try:
        attempt(value)
    except Exception:  # noqa: BLE001 (whatever it is, this is the one)
        return False
    return True
