"""What a wait tells while it lasts: what is new, in a few lines, however long it takes and however often it looks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

MOST_LINES: Final = 5
"""Of progress; with two of an outage and what a task says at its end, a task stays within eight lines."""
_FOR_STAGES: Final = 2
"""So many of them are kept for new stages."""
_FIRST_PAUSE_S: Final = 10.0
_PAUSE_GROWS: Final = 6.0


class Log(Protocol):
    """What a task's or trigger's log has."""

    def log(self, level: int, message: str, /, *arguments: Any) -> None:
        """Write a line."""


@dataclass
class Story:
    """The lines of one wait.

    :param log: where they go
    :param lines: how many lines of progress there are so far
    :param last: the latest of them
    :param told_at: when it was written, in seconds since the epoch
    :param tells_outage: whether the outage that lasts has been told
    :param outages: how many outages have been told
    """

    log: Log
    lines: int = 0
    last: str = ""
    told_at: float = 0.0
    tells_outage: bool = False
    outages: int = 0

    def progress(self, subject: str, text: str, now: float) -> None:
        """Tell how far it is, if that is news.

        :param subject: what is awaited
        :param text: what was seen: the stage, and after a comma how far it is
        :param now: seconds since the epoch
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
        """A new stage is told at once. More of the same is told after a pause that grows, as long as lines for stages are left."""
        if _stage_of(text) != _stage_of(self.last):
            return self.lines < MOST_LINES
        pause_s = _FIRST_PAUSE_S * _PAUSE_GROWS ** (self.lines - 1)
        return self.lines < MOST_LINES - _FOR_STAGES and now - self.told_at >= pause_s

    def outage(self, subject: str, text: str) -> None:
        """Tell that the service is away, once for each of the first outages.

        :param subject: what is awaited
        :param text: how that was noticed
        """
        if not self.tells_outage:
            self.tells_outage = True
            self.outages += 1
            if self.outages == 1:
                self.log.log(logging.WARNING, "%s: %s", subject, text)

    def to_json(self) -> dict[str, Any]:
        """What another process needs to go on with it."""
        return {
            "lines": self.lines,
            "last": self.last,
            "told_at": self.told_at,
            "tells_outage": self.tells_outage,
            "outages": self.outages,
        }

    @classmethod
    def from_json(cls, log: Log, told: Mapping[str, Any]) -> Story:
        """The story that :meth:`to_json` was asked of.

        :param log: where lines go on to
        :param told: what it said
        """
        return cls(log, **told)


def _stage_of(text: str) -> str:
    return text.partition(",")[0]
