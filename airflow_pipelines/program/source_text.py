"""The text of a program, with the conversion of offsets to lines and columns, and of spans to snippets."""

from __future__ import annotations

import re
from bisect import bisect_right

from airflow_pipelines.program.messages import ProgramMessage
from airflow_pipelines.program.spans import Span

_LINE_END = re.compile(r"\r\n|\n|\r")


class SourceText:
    """A text that maps offsets to positions. Lines end with LF, CR LF or CR; columns count characters from 1."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column of the character at ``offset``."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column, both from 1."""
        return self._starts[line - 1] + column - 1

    def span(self, start: int, end: int) -> Span:
        """Return the span of ``text[start:end]``; an empty piece spans the character at ``start``."""
        return Span(*self.position(start), *self.position(max(start, end - 1)))

    def slice(self, span: Span) -> str:
        """Return the text of a span."""
        return self.text[self.offset(span.start_line, span.start_column) : self.offset(span.end_line, span.end_column) + 1]

    def snippet(self, span: Span) -> str:
        """Return the line before the span and the span's first line with their numbers, and carets under the span."""
        first = max(1, span.start_line - 1)
        lines = [f"{number:5}|{self._line(number)}" for number in range(first, span.start_line + 1)]
        last_column = span.end_column if span.end_line == span.start_line else len(self._line(span.start_line))
        carets = "^" * max(1, last_column - span.start_column + 1)
        return "\n".join([*lines, " " * (5 + span.start_column) + carets]) + "\n"

    def message(self, span: Span, error_type: str, message: str) -> ProgramMessage:
        """Return an error about a span of this text, with its snippet.

        :param span: the span
        :param error_type: the heading of the message
        :param message: the text of the error
        """
        return ProgramMessage(span, error_type, message, self.snippet(span))

    def warning(self, span: Span, error_type: str, message: str) -> ProgramMessage:
        """Return a warning about a span of this text, with its snippet.

        :param span: the span
        :param error_type: the heading of the message
        :param message: the text of the warning
        """
        return ProgramMessage(span, error_type, message, self.snippet(span), warning=True)

    def _line(self, number: int) -> str:
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[self._starts[number - 1] : end].rstrip("\r\n")


def twice(first: Span, again: Span) -> str:
    """Return the end of a message about a double declaration: both positions."""
    places = [f"line {span.start_line}, column {span.start_column}" for span in (first, again)]
    return f"first at {places[0]}, again at {places[1]}"
