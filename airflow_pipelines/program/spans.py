"""Spans in a program's text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Span:
    """A span of the program's text; lines and columns count from 1 and both ends are inclusive."""

    start_line: int
    start_column: int
    end_line: int
    end_column: int

    def to_wire(self) -> dict[str, int]:
        """Return the JSON form, which messages and reasons include."""
        return {
            "start_line_number": self.start_line,
            "start_column": self.start_column,
            "end_line_number": self.end_line,
            "end_column": self.end_column,
        }


NOWHERE: Final = Span(0, 0, 0, 0)
"""The span of a message that has none."""
