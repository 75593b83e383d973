"""The lines of a pipeline's log: output of its program, or messages of the pipeline."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_WRITTEN: Final = re.compile(r"\S+Z [A-Z]+ \[.*?\] (stdout|stderr): (.*)", re.DOTALL)


class LogSource(StrEnum):
    """The origin of a log line."""

    STDOUT = "stdout"
    STDERR = "stderr"
    PIPELINE = "pipeline"


@dataclass(frozen=True, slots=True)
class LogLine:
    """A log line.

    :param source: the origin of the line
    :param text: the text that the program has written, or the whole line as it is in the log
    """

    source: LogSource
    text: str

    @classmethod
    def of(cls, line: str) -> LogLine:
        """Parse a line of the log.

        :param line: the line, without its end
        """
        parsed = _WRITTEN.fullmatch(line)
        return cls(LogSource.PIPELINE, line) if parsed is None else cls(LogSource(parsed[1]), parsed[2])
