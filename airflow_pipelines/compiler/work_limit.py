"""The limit of a compilation's work, not of its time, so that a busy machine refuses no program."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

GUARD: Final = 36.0
"""The factor of its limit after which a compilation is given up in any case: it then has less than a thirtieth of the machine."""


class WorkLimit:
    """The limit of the processor time of a compilation, counted from its creation.

    :param limit_s: the seconds of processor time
    :param used: returns the processor time that its thread has used, in seconds
    :param clock: returns the elapsed time, in seconds
    """

    def __init__(self, limit_s: float, used: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = limit_s
        self._used = used
        self._clock = clock
        self._used_before = used()
        self._began = clock()

    def reason_to_end(self, place: str) -> str | None:
        """Return the reason to stop the compilation, or None as long as it is within its limits.

        :param place: the progress so far, as text
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
