"""The execution mode of a program: every update, or only final results."""

from __future__ import annotations

from enum import Enum


class RuntimeExecutionMode(Enum):
    """The execution mode of a program.

    ``STREAMING`` emits each update as it comes. ``BATCH`` needs sources that end, and emits final results only. ``AUTOMATIC`` is
    ``BATCH`` if all sources end, and ``STREAMING`` otherwise.
    """

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
