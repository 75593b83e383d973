"""Whether a program gives every update, or only final results."""

from __future__ import annotations

from enum import Enum


class RuntimeExecutionMode(Enum):
    """How a program runs.

    ``STREAMING`` gives each update as it comes, ``BATCH`` needs sources that end and gives final results only, ``AUTOMATIC`` is
    ``BATCH`` exactly when all sources end.
    """

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
