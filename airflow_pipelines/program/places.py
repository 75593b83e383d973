"""Places in a program's text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the program's text; lines and columns count from 1 and both ends are included."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int
