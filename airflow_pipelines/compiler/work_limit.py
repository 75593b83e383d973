"""The limit of what one compilation may take: of work, not of time, so that a busy machine refuses no program."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

GUARD: Final = 36.0
"""A compilation is given up after so many times its limit in any case: it then has the machine for less than a thirtieth part."""


class WorkLimit:
    """Says when a compilation has taken too much of a processor, counted from when this is made.

    :param limit_s: seconds of processor time
    :param used: the processor time that its thread has used, in seconds
    :param clock: the time that passes, in seconds
    """

    def __init__(self, limit_s: float, used: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = limit_s
        self._used = used
        self._clock = clock
        self._used_before = used()
        self._began = clock()

    def reason_to_end(self, place: str) -> str | None:
        """Why to go no further; None as long as the compilation is within its limits.

        :param place: how far it has come
        """
        used = self._used() - self._used_before
        if used > self._limit_s:
            return (
                f"Compiling this program takes more than {self._limit_s:.0f} s of a processor: {place}. Divide it into several"
                " pipelines"
            )
        passed = self._clock() - self._began
        if passed > GUARD * self._limit_s:
            return (
                f"Compiling this program has not come to its end within {passed:.0f} s, in which it had a processor for"
                f" {used:.0f} s: {place}. The machine of the compiler is too busy: try again when it has less to do"
            )
        return None
