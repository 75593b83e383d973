"""Lengths of time."""

from __future__ import annotations

import datetime
from typing import Any

from airflow_pipelines.streams.errors import StreamProgramError


def milliseconds(length: Any) -> int:
    """Return a length of time in ms.

    :param length: ms, a ``timedelta``, or an object with ``to_milliseconds`` or ``to_millis``
    :returns: ms
    :raises StreamProgramError: if it is none of these
    """
    if isinstance(length, int) and not isinstance(length, bool):
        return length
    if isinstance(length, datetime.timedelta):
        return length // datetime.timedelta(milliseconds=1)
    for method in ("to_milliseconds", "to_millis"):
        if hasattr(length, method):
            return int(getattr(length, method)())
    raise StreamProgramError(f"{length!r} is no length of time: use Time.seconds(...) or a number of milliseconds.")
