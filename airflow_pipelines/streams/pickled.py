"""Bytes of values that are kept. What cannot become bytes is named by the path to it."""

from __future__ import annotations

import pickle
from typing import Any

from airflow_pipelines.streams.culprits import culprit
from airflow_pipelines.streams.errors import StreamProgramError


def to_bytes(value: Any, name: str) -> bytes:
    """The bytes of a value.

    :param value: the value
    :param name: how it is called
    :returns: bytes
    :raises StreamProgramError: when something in it has no bytes: the message has the path to it
    """
    try:
        return pickle.dumps(value, 5)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        path, part = culprit(value, pickle.dumps)
        place = f" at {path}" if path else ""
        raise StreamProgramError(
            f"{name} cannot be kept: its value{place} is of type {type(part).__name__} ({error}). Keep what that is made of, and"
            " make it again from this."
        ) from None
