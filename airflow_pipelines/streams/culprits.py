"""Finds out what in a value cannot be copied or kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def culprit(value: Any, attempt: Callable[[Any], Any]) -> tuple[str, Any]:
    """The innermost object that makes something impossible for a value.

    :param value: a value for which it is impossible
    :param attempt: tries it, and raises where it is impossible
    :returns: the path to the object, such as ``.client['a'][0]``, and the object
    """
    path = ""
    while True:
        for step, part in _parts(value):
            try:
                attempt(part)
            except Exception:  # noqa: BLE001 (whatever it is, this is the one)
                path, value = path + step, part
                break
        else:
            return path, value


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [(f"[{key!r}]", item) for key, item in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [(f"[{index}]", item) for index, item in enumerate(value)]
    return [(f".{key}", item) for key, item in vars(value).items()] if hasattr(value, "__dict__") else []
