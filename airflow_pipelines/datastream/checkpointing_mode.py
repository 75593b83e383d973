"""The guarantee of checkpoints after a failure."""

from __future__ import annotations

from enum import Enum


class CheckpointingMode(Enum):
    """The guarantee of a checkpoint for the state of functions: each element counts exactly once, or at least once."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
