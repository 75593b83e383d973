"""One line at the end of a terminal that is written again and again, below what the program prints."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

_ERASE = "\r\x1b[K"
_SHOW_EVERY = 0.1
_WIDTH_OF_UNKNOWN = 80


def can_show_line(stream: TextIO) -> bool:
    """Whether a line can be shown there: not in a file, in a pipe, in CI, or on a terminal that cannot erase.

    :param stream: where it would be written
    :returns: whether somebody looks at it
    """
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("CI")


class TerminalLine:
    """The line.

    :param stream: the terminal
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.RLock()
        self._text = ""
        self._is_shown = False
        self._shown_at = 0.0
        self._is_free = True

    def show(self, text: str) -> None:
        """Write the line, unless the program is in the middle of one of its own.

        :param text: without an end of line
        """
        with self._lock:
            self._text = text
            if self._is_free and text:
                width = os.get_terminal_size(self._stream.fileno()).columns or _WIDTH_OF_UNKNOWN
                self._stream.write(_ERASE + text[: max(width - 1, 0)])
                self._stream.flush()
                self._is_shown = True
                self._shown_at = time.monotonic()

    def write_above(self, text: str, stream: TextIO) -> int:
        """Write what the program says in the place of the line, and the line below it.

        :param text: what it says
        :param stream: where to
        :returns: what the stream returns
        """
        with self._lock:
            self.erase()
            written = stream.write(text)
            self._is_free = text.endswith("\n") if text else self._is_free
            # A program that says much writes fast, and the line waits.
            if self._is_free and time.monotonic() - self._shown_at > _SHOW_EVERY:
                stream.flush()
                self.show(self._text)
            return written

    def erase(self) -> None:
        """Leave the terminal as if there was no line."""
        with self._lock:
            if self._is_shown:
                self._is_shown = False
                self._stream.write(_ERASE)
                self._stream.flush()

    @contextmanager
    def below_output(self) -> Iterator[TerminalLine]:
        """Keep the line below what is written to the terminal by ``print`` and by logging, until the context ends.

        :returns: this line
        """
        streams = {id(stream): cast(TextIO, _Above(self, stream)) for stream in _on_terminal((sys.stdout, sys.stderr))}
        handlers = [(handler, handler.stream) for handler in _stream_handlers() if id(handler.stream) in streams]
        stdout, stderr = sys.stdout, sys.stderr
        try:
            sys.stdout, sys.stderr = streams.get(id(stdout), stdout), streams.get(id(stderr), stderr)
            for handler, stream in handlers:
                handler.setStream(streams[id(stream)])
            yield self
        finally:
            self.erase()
            for handler, stream in handlers:
                handler.setStream(stream)
            sys.stdout, sys.stderr = stdout, stderr


class _Above:
    """A stream to the terminal on which all is written above the line."""

    def __init__(self, line: TerminalLine, stream: TextIO) -> None:
        self._line = line
        self._stream = stream

    def write(self, text: str) -> int:
        return self._line.write_above(text, self._stream)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def fileno(self) -> int:
        # Who asks for this, as input() does, writes past this object.
        self._line.erase()
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _on_terminal(streams: tuple[TextIO, ...]) -> list[TextIO]:
    return [stream for stream in streams if stream.isatty()]


def _stream_handlers() -> list[logging.StreamHandler[Any]]:
    known = [logging.root, *logging.Logger.manager.loggerDict.values()]
    loggers = [each for each in known if isinstance(each, logging.Logger)]
    handlers = [handler for logger in loggers for handler in logger.handlers if isinstance(handler, logging.StreamHandler)]
    # Those that look up sys.stderr each time need no other stream, and take none.
    return [handler for handler in handlers if not isinstance(getattr(type(handler), "stream", None), property)]
