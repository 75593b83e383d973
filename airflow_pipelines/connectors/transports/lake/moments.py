"""Options that are points in time, by which versions of tables are found."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import AfterValidator


def _check_moment(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no time such as 2026-01-31T12:00:00Z") from error
    return text


Moment: TypeAlias = Annotated[str, AfterValidator(_check_moment)]
"""A point in time in the format of RFC 3339."""
