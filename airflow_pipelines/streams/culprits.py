"""Finds out what in a value cannot be copied or kept: an error of the copying itself names at most the type."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

Parts: TypeAlias = Callable[[Any, str], Iterable[tuple[Any, str]]]
"""Gives what a value is made of: each part with the path to it, from a value and the path to that."""
_DEEPEST = 30


def culprit(value: Any, attempt: Callable[[Any], Any]) -> tuple[str, Any]:
    """The innermost object that makes something impossible for a value.

    :param value: a value for which it is impossible
    :param attempt: tries it, and raises where it is impossible
    :returns: the path to the object, such as ``.client['a'][0]``, and the object
    """
    return innermost(value, "", attempt, parts_of)


def innermost(value: Any, path: str, attempt: Callable[[Any], Any], parts: Parts) -> tuple[str, Any]:
    """The same for values of other parts.

    :param value: a value for which it is impossible
    :param path: the path to it
    :param attempt: tries it, and raises where it is impossible
    :param parts: what values are made of
    :returns: the path to the object, and the object
    """
    # The objects themselves, so that no other one gets the id of one that was looked at.
    seen = {id(value): value}
    for _ in range(_DEEPEST):
        inner = next(((part, at) for part, at in parts(value, path) if id(part) not in seen and not _works(attempt, part)), None)
        if inner is None:
            break
        value, path = inner
        seen[id(value)] = value
    return path, value


def parts_of(value: Any, path: str) -> list[tuple[Any, str]]:
    """What a value is made of: the values of a dict, items, attributes.

    :param value: the value
    :param path: the path to it
    :returns: parts, each with the path to it
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
