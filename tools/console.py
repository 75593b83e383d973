"""The output of long runs while they continue."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """Print a line at once, also if the output is a file or a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
