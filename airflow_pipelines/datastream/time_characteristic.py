"""The notion of time that windows take when their assigner names none."""

from __future__ import annotations

from enum import Enum


class TimeCharacteristic(Enum):
    """A notion of time: the machine's clock, the time of arrival at a source, or the time that elements carry."""

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2
