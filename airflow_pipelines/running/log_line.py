"""What a line of a pipeline's log is: something that its program has written, or something that the pipeline says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_WRITTEN: Final = re.compile(r"\S+Z [A-Z]+ \[.*?\] (stdout|stderr): (.*)", re.DOTALL)


class LogSource(StrEnum):
    """Who has written a line."""

    STDOUT = "stdout"
    STDERR = "stderr"
    PIPELINE = "pipeline"


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line.

    :param source: who has written it
    :param text: what the program has written, or the line as it is in the log
    """

    source: LogSource
    text: str

    @classmethod
    def of(cls, line: str) -> LogLine:
        """Read a line of the log.

        :param line: the line, without its end
        """
        found = _WRITTEN.fullmatch(line)
        return cls(LogSource.PIPELINE, line) if found is None else cls(LogSource(found[1]), found[2])
