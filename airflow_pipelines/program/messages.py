"""Errors in a program's text, each with its span and a snippet of the text around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.program.spans import NOWHERE, Span

SYNTAX_ERROR = "Error parsing SQL"
"""The error type of a text that is not SQL, or of an unknown statement."""
COMPILATION_ERROR = "Compilation error"
"""The error type of a program that parses but is semantically wrong."""
NOT_SUPPORTED = "Not supported yet"
"""The error type of a statement or clause that is known but not implemented."""
NO_EFFECT = "No effect"
"""The type of the warnings about clauses that are accepted and ignored."""


@dataclass(frozen=True, slots=True)
class ProgramMessage:
    """One error or warning about a program's text.

    :param snippet: the text around the span; empty if the message has no span
    :param file: the file of a stream program that it is about; empty for the SQL text
    """

    span: Span | None
    error_type: str
    message: str
    snippet: str = ""
    warning: bool = False
    file: str = ""

    def to_wire(self) -> dict[str, Any]:
        """Return the message in the form of ``program_error.sql_compilation.messages``.

        Without a span all positions are 0. There is a field for the file only if it is not the SQL text.
        """
        return {
            **(self.span or NOWHERE).to_wire(),
            "warning": self.warning,
            "error_type": self.error_type,
            "message": self.message,
            "snippet": self.snippet,
            **({"file": self.file} if self.file else {}),
        }

    def __str__(self) -> str:
        file = f"{self.file}: " if self.file else ""
        where = f"line {self.span.start_line}, column {self.span.start_column}: " if self.span else ""
        return f"{file}{where}{self.error_type}: {self.message}" + (f"\n{self.snippet}" if self.snippet else "")


def place_order(message: ProgramMessage) -> tuple[int, int]:
    """Return the sort key of a message by its span; messages without one come last."""
    return (message.span.start_line, message.span.start_column) if message.span else (1 << 60, 0)


class ProgramErrors(Exception):
    """The errors of a program that cannot be compiled.

    :param messages: all errors found, in the order of their spans
    """

    def __init__(self, messages: Sequence[ProgramMessage]) -> None:
        self.messages: tuple[ProgramMessage, ...] = tuple(sorted(messages, key=place_order))
        super().__init__("\n".join(str(message) for message in self.messages))
