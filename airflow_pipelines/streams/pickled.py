"""Bytes of values that are kept. What cannot become bytes is named by the path to it."""

from __future__ import annotations

import pickle
from typing import Any

from airflow_pipelines.streams.errors import StreamProgramError


def to_bytes(value: Any, path: str) -> bytes:
    """The bytes of a value.

    :param value: the value
    :param path: how it is called
    :returns: bytes
    :raises StreamProgramError: when something in it has no bytes: the message has the path to it
    """
    try:
        return pickle.dumps(value, 5)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise StreamProgramError(
            f"{_culprit(value, path)} cannot be kept: {error}. Keep the values that it is made of, and make it again from these."
        ) from error


def _culprit(value: Any, path: str) -> str:
    parts: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        parts = [(f"{path}[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    elif hasattr(value, "__dict__"):
        parts = [(f"{path}.{key}", item) for key, item in vars(value).items()]
    for name, item in parts:
        try:
            pickle.dumps(item, 5)
        except Exception:  # noqa: BLE001 (whatever it is, this is the one)
            return _culprit(item, name)
    return f"{path} (of type {type(value).__name__})"
