"""The progress lines of a wait: news only, in a few lines, however long it takes and however often it polls."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

MOST_LINES: Final = 5
"""The maximum number of progress lines.

With two lines of an outage and the task's own last line, a task stays within eight lines.
"""
_FOR_STAGES: Final = 2
"""The number of these lines that are kept for new stages."""
_FIRST_PAUSE_S: Final = 10.0
_PAUSE_GROWS: Final = 6.0


class Log(Protocol):
    """The part of the log of a task or trigger that is used here."""

    def log(self, level: int, message: str, /, *arguments: Any) -> None:
        """Write a line."""


@dataclass
class WaitLog:
    """The progress lines of one wait.

    :param log: the log to write to
    :param lines: the number of progress lines so far
    :param last: the latest of them
    :param told_at: the time when it was written, in seconds since the epoch
    :param tells_outage: True if the current outage has been reported
    :param outages: the number of outages that were reported
    """

    log: Log
    lines: int = 0
    last: str = ""
    told_at: float = 0.0
    tells_outage: bool = False
    outages: int = 0

    def progress(self, subject: str, text: str, now: float) -> None:
        """Log the progress, if it is news.

        :param subject: the subject of the wait
        :param text: the progress: the stage, and after a comma the details
        :param now: the current time, in seconds since the epoch
        """
        if self.tells_outage:
            self.tells_outage = False
            if self.outages == 1:
                self.log.log(logging.INFO, "%s: the service answers again", subject)
        if text == self.last or not self._is_time_for(text, now):
            return
        self.log.log(logging.INFO, "%s: %s", subject, text)
        self.last, self.told_at, self.lines = text, now, self.lines + 1

    def _is_time_for(self, text: str, now: float) -> bool:
        """Return True if a line should be logged now.

        A new stage is logged at once. More of the same stage is logged after a pause that grows, as long as lines for stages are
        left.
        """
        if _stage_of(text) != _stage_of(self.last):
            return self.lines < MOST_LINES
        pause_s = _FIRST_PAUSE_S * _PAUSE_GROWS ** (self.lines - 1)
        return self.lines < MOST_LINES - _FOR_STAGES and now - self.told_at >= pause_s

    def outage(self, subject: str, text: str) -> None:
        """Log that the service is away, for the first outage only.

        :param subject: the subject of the wait
        :param text: the error that revealed it
        """
        if not self.tells_outage:
            self.tells_outage = True
            self.outages += 1
            if self.outages == 1:
                self.log.log(logging.WARNING, "%s: %s", subject, text)

    def to_json(self) -> dict[str, Any]:
        """Return the state that another process needs to continue it."""
        return {
            "lines": self.lines,
            "last": self.last,
            "told_at": self.told_at,
            "tells_outage": self.tells_outage,
            "outages": self.outages,
        }

    @classmethod
    def from_json(cls, log: Log, told: Mapping[str, Any]) -> WaitLog:
        """Return the story that :meth:`to_json` serialised.

        :param log: the log to write to
        :param told: the JSON object
        """
        return cls(log, **told)


def _stage_of(text: str) -> str:
    return text.partition(",")[0]
