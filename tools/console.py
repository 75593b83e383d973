"""What long runs say while they go on."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """Print a line at once, also where the output is a file or a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
