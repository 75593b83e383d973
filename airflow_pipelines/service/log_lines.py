"""A part of a pipeline's log, for readers that poll instead of following it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

MOST_LINES: Final = 2000
MOST_BYTES: Final = 1 << 20
"""The maximum number of bytes of a log in one answer."""


@dataclass(frozen=True, slots=True)
class LogLines:
    """Whole lines of a log.

    :param lines: the lines, without their line ends
    :param begin: the position of the first line, in bytes from the log's beginning
    :param end: the position after the last line
    :param cut: True if there are earlier lines that the reader has not seen
    """

    lines: list[str]
    begin: int
    end: int
    cut: bool

    def to_wire(self) -> dict[str, Any]:
        """Return the answer of ``GET log_lines``."""
        return {"lines": self.lines, "from": self.begin, "next": self.end, "cut": self.cut}


def last_lines(path: Path, limit: int) -> LogLines:
    """Return the last lines of a log.

    :param path: the log; a missing one counts as empty
    :param limit: the maximum number of lines
    """
    try:
        with path.open("rb") as file:
            size = _size(file)
            text, begin = _read_whole_lines(file, max(0, size - MOST_BYTES), size)
    except FileNotFoundError:
        return LogLines([], 0, 0, cut=False)
    lines = text.splitlines(keepends=True)
    kept = lines[-limit:]
    begin += sum(map(len, lines[: len(lines) - len(kept)]))
    return _decode_lines(kept, begin, cut=begin > 0)


def lines_after(path: Path, place: int, limit: int) -> LogLines:
    """Return the lines of a log after the known ones, or the last lines if the log has been rotated meanwhile.

    :param path: the log
    :param place: the position after the last known line
    :param limit: the maximum number of lines
    """
    try:
        with path.open("rb") as file:
            size = _size(file)
            if size >= place:
                file.seek(place)
                text = file.read(MOST_BYTES)
                complete = text[: text.rfind(b"\n") + 1]
                if not complete and len(text) == MOST_BYTES:
                    # A line longer than an answer is returned in parts.
                    complete = text
                return _decode_lines(complete.splitlines(keepends=True)[:limit], place, cut=False)
    except FileNotFoundError:
        return LogLines([], 0, 0, cut=False)
    tail = last_lines(path, limit)
    return LogLines(tail.lines, tail.begin, tail.end, cut=True)


def _size(file: BinaryIO) -> int:
    return file.seek(0, os.SEEK_END)


def _read_whole_lines(file: BinaryIO, begin: int, end: int) -> tuple[bytes, int]:
    """Return the whole lines between two positions, and the position of the first one."""
    file.seek(begin)
    text = file.read(end - begin)
    if begin:
        skipped = text.find(b"\n") + 1
        text, begin = text[skipped:], begin + skipped
    return text[: text.rfind(b"\n") + 1], begin


def _decode_lines(lines: list[bytes], begin: int, *, cut: bool) -> LogLines:
    texts = [line.rstrip(b"\r\n").decode("utf-8", "replace") for line in lines]
    return LogLines(texts, begin, begin + sum(map(len, lines)), cut)
