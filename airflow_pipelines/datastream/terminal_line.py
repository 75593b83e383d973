"""A line at the bottom of a terminal that is updated in place, below the output of the program."""

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
    """Return True if a line can be shown on a stream.

    A file, a pipe, CI, and a terminal that cannot erase show none.

    :param stream: the stream to write to
    :returns: True if the stream is a suitable terminal
    """
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("CI")


class TerminalLine:
    """A line at the bottom of a terminal that is updated in place.

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
        """Write the line, unless the program is in the middle of a line of its own.

        :param text: the text without an end of line
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
        """Write output of the program in place of the line, and the line below it.

        :param text: the output
        :param stream: the stream that the output goes to
        :returns: the result of writing to the stream
        """
        with self._lock:
            self.erase()
            written = stream.write(text)
            self._is_free = text.endswith("\n") if text else self._is_free
            # While a program writes quickly, the line is not redrawn each time.
            if self._is_free and time.monotonic() - self._shown_at > _SHOW_EVERY:
                stream.flush()
                self.show(self._text)
            return written

    def erase(self) -> None:
        """Erase the line from the terminal."""
        with self._lock:
            if self._is_shown:
                self._is_shown = False
                self._stream.write(_ERASE)
                self._stream.flush()

    @contextmanager
    def below_output(self) -> Iterator[TerminalLine]:
        """Keep the line below the output of ``print`` and of logging to the terminal, until the context ends.

        :returns: this line
        """
        streams = {id(stream): cast(TextIO, _Above(self, stream)) for stream in _select_terminals((sys.stdout, sys.stderr))}
        handlers = [(handler, handler.stream) for handler in _find_stream_handlers() if id(handler.stream) in streams]
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
    """A stream to the terminal that writes all output above the line."""

    def __init__(self, line: TerminalLine, stream: TextIO) -> None:
        self._line = line
        self._stream = stream

    def write(self, text: str) -> int:
        return self._line.write_above(text, self._stream)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def fileno(self) -> int:
        # Callers of this, such as input(), bypass this object when they write.
        self._line.erase()
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _select_terminals(streams: tuple[TextIO, ...]) -> list[TextIO]:
    return [stream for stream in streams if stream.isatty()]


def _find_stream_handlers() -> list[logging.StreamHandler[Any]]:
    known = [logging.root, *logging.Logger.manager.loggerDict.values()]
    loggers = [each for each in known if isinstance(each, logging.Logger)]
    handlers = [handler for logger in loggers for handler in logger.handlers if isinstance(handler, logging.StreamHandler)]
    # Handlers that look up sys.stderr each time need no other stream, and accept none.
    return [handler for handler in handlers if not isinstance(getattr(type(handler), "stream", None), property)]
