"""A part of a pipeline's log, for who asks again and again instead of following it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

MOST_LINES: Final = 2000
MOST_BYTES: Final = 1 << 20
"""An answer has so much of a log at most."""


@dataclass(frozen=True, slots=True)
class LogLines:
    """Whole lines of a log.

    :param lines: without their ends
    :param begin: the place of the first one, in bytes from the log's beginning
    :param end: the place after the last one
    :param cut: whether there are lines before these that the reader has not seen
    """

    lines: list[str]
    begin: int
    end: int
    cut: bool

    def to_wire(self) -> dict[str, Any]:
        """The answer of ``GET log_lines``."""
        return {"lines": self.lines, "from": self.begin, "next": self.end, "cut": self.cut}


def last_lines(path: Path, limit: int) -> LogLines:
    """The last lines of a log.

    :param path: the log; one that is not there is empty
    :param limit: how many lines at most
    """
    try:
        with path.open("rb") as file:
            size = _size(file)
            text, begin = _whole_lines(file, max(0, size - MOST_BYTES), size)
    except FileNotFoundError:
        return LogLines([], 0, 0, cut=False)
    lines = text.splitlines(keepends=True)
    kept = lines[-limit:]
    begin += sum(map(len, lines[: len(lines) - len(kept)]))
    return _found(kept, begin, cut=begin > 0)


def lines_after(path: Path, place: int, limit: int) -> LogLines:
    """The lines of a log after those that are known. Of a log that has been replaced meanwhile, the last lines.

    :param path: the log
    :param place: the place after the last line that is known
    :param limit: how many lines at most
    """
    try:
        with path.open("rb") as file:
            size = _size(file)
            if size >= place:
                file.seek(place)
                text = file.read(MOST_BYTES)
                complete = text[: text.rfind(b"\n") + 1]
                if not complete and len(text) == MOST_BYTES:
                    # A line longer than an answer is told in parts.
                    complete = text
                return _found(complete.splitlines(keepends=True)[:limit], place, cut=False)
    except FileNotFoundError:
        return LogLines([], 0, 0, cut=False)
    found = last_lines(path, limit)
    return LogLines(found.lines, found.begin, found.end, cut=True)


def _size(file: BinaryIO) -> int:
    return file.seek(0, os.SEEK_END)


def _whole_lines(file: BinaryIO, begin: int, end: int) -> tuple[bytes, int]:
    """The whole lines between two places, and where the first of them begins."""
    file.seek(begin)
    text = file.read(end - begin)
    if begin:
        skipped = text.find(b"\n") + 1
        text, begin = text[skipped:], begin + skipped
    return text[: text.rfind(b"\n") + 1], begin


def _found(lines: list[bytes], begin: int, *, cut: bool) -> LogLines:
    texts = [line.rstrip(b"\r\n").decode("utf-8", "replace") for line in lines]
    return LogLines(texts, begin, begin + sum(map(len, lines)), cut)
