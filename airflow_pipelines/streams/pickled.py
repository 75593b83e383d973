"""Values as bytes. The path to a part that cannot be pickled is in the error."""

from __future__ import annotations

import pickle
from typing import Any

from airflow_pipelines.streams.culprits import culprit
from airflow_pipelines.streams.errors import StreamProgramError


def to_bytes(value: Any, name: str) -> bytes:
    """Pickle a value.

    :param value: the value
    :param name: the name of the value, for the message
    :returns: the bytes
    :raises StreamProgramError: if a part of the value cannot be pickled; the message has the path to that part
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
