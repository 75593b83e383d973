"""How long a connector waits before it tries again what has failed."""

from __future__ import annotations

import random
from typing import Final

FIRST_S: Final = 0.5
LONGEST_S: Final = 30.0
_SPREAD: Final = 0.2
"""By which part waits may be shorter, so that not all connectors of a server that comes back ask it at once."""


class BackOff:
    """Waits that double with each failure in a row."""

    def __init__(self) -> None:
        self.failures = 0
        """How many there were in a row."""

    def next_s(self) -> float:
        """Seconds to wait after one more failure."""
        # Far beyond the longest wait the power is too large for a float.
        wait = min(FIRST_S * 2.0 ** min(self.failures, 16), LONGEST_S)
        self.failures += 1
        return wait * (1 - _SPREAD * random.random())  # noqa: S311  spreads load, keeps no secret

    def reset(self) -> None:
        """It has worked."""
        self.failures = 0
