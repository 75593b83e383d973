"""The waits of a connector before it retries after a failure."""

from __future__ import annotations

import random
from typing import Final

FIRST_S: Final = 0.5
LONGEST_S: Final = 30.0
_SPREAD: Final = 0.2
"""The fraction by which waits may be shorter, so that not all connectors of a recovering server ask it at once."""


class BackOff:
    """Waits that double with each failure in a row."""

    def __init__(self) -> None:
        self.failures = 0
        """The number of failures in a row."""

    def next_s(self) -> float:
        """Return the seconds to wait after one more failure."""
        # The exponent is bounded, because a large power would overflow a float.
        wait = min(FIRST_S * 2.0 ** min(self.failures, 16), LONGEST_S)
        self.failures += 1
        return wait * (1 - _SPREAD * random.random())  # noqa: S311  spreads load, keeps no secret

    def reset(self) -> None:
        """Note a success: the next wait is short again."""
        self.failures = 0
