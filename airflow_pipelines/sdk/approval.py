"""The expectation of an approval, as the SDK and the hook send it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final


class NotGiven(Enum):
    """The type of :data:`NOT_GIVEN`."""

    DEFAULT = "not given"


NOT_GIVEN: Final = NotGiven.DEFAULT
"""The default of an expectation. None is not the default: a value that got lost on its way must not approve whatever waits."""


def approval_body(expected_programs: Mapping[str, Any] | NotGiven) -> dict[str, Any] | None:
    """Return the body of an approval.

    :param expected_programs: the ``programs`` of the change that is approved, or NOT_GIVEN for whatever waits
    :returns: the JSON value; None for no body
    :raises ValueError: when the expectation is empty or None
    """
    if isinstance(expected_programs, NotGiven):
        return None
    if not expected_programs:
        raise ValueError(
            f"expected_programs is {expected_programs!r}: give the 'programs' of the change that waits, or leave the argument out "
            "to approve whatever waits"
        )
    return {"programs": dict(expected_programs)}
