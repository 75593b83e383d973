"""How exact state is after a failure."""

from __future__ import annotations

from enum import Enum


class CheckpointingMode(Enum):
    """What a checkpoint guarantees for the state of functions: each element counts once, or at least once."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
