"""Windows, assigners and triggers."""

from __future__ import annotations

import struct
from typing import BinaryIO

from airflow_pipelines.datastream.common.serializer import TypeSerializer
from airflow_pipelines.streams.windows.assigners import MergingWindowAssigner, WindowAssigner
from airflow_pipelines.streams.windows.count_windows import CountSlidingWindowAssigner, CountTumblingWindowAssigner, GlobalWindows
from airflow_pipelines.streams.windows.time_windows import (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from airflow_pipelines.streams.windows.trigger import Trigger, TriggerResult
from airflow_pipelines.streams.windows.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
)
from airflow_pipelines.streams.windows.window import CountWindow, GlobalWindow, TimeWindow, Window

_TIME = struct.Struct(">qq")
_COUNT = struct.Struct(">q")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """A serializer that writes start and end of a window, each as eight bytes."""

    def serialize(self, element: TimeWindow, stream: BinaryIO) -> None:
        """Write a window."""
        stream.write(_TIME.pack(element.start, element.end))

    def deserialize(self, stream: BinaryIO) -> TimeWindow:
        """Read a window."""
        return TimeWindow(*_TIME.unpack(stream.read(_TIME.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """A serializer that writes the number of a window as eight bytes."""

    def serialize(self, element: CountWindow, stream: BinaryIO) -> None:
        """Write a window."""
        stream.write(_COUNT.pack(element.id))

    def deserialize(self, stream: BinaryIO) -> CountWindow:
        """Read a window."""
        return CountWindow(*_COUNT.unpack(stream.read(_COUNT.size)))


__all__ = [
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountSlidingWindowAssigner",
    "CountTrigger",
    "CountTumblingWindowAssigner",
    "CountWindow",
    "CountWindowSerializer",
    "EventTimeSessionWindows",
    "EventTimeTrigger",
    "GlobalWindow",
    "GlobalWindows",
    "MergingWindowAssigner",
    "NeverTrigger",
    "ProcessingTimeSessionWindows",
    "ProcessingTimeTrigger",
    "PurgingTrigger",
    "SessionWindowTimeGapExtractor",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TimeWindow",
    "TimeWindowSerializer",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "Window",
    "WindowAssigner",
]
