"""Watermarks: how timestamps and watermarks are made from elements, and how those of several inputs become one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch
from airflow_pipelines.streams.errors import StreamProgramError


class WatermarkOutput:
    """Takes what a generator emits after an element or after an interval."""

    __slots__ = ("emitted", "idle")

    def __init__(self) -> None:
        self.emitted: int | None = None
        self.idle = False

    def emit_watermark(self, timestamp: Any) -> None:
        """No element with this timestamp or an earlier one is expected any more.

        :param timestamp: ms, or an object that has them as ``timestamp``
        """
        value = timestamp if timestamp.__class__ is int else int(getattr(timestamp, "timestamp", timestamp))
        if self.emitted is None or value > self.emitted:
            self.emitted = value
        self.idle = False

    def mark_idle(self) -> None:
        """Do not hold back the watermark of those who read this stream."""
        self.idle = True

    def mark_active(self) -> None:
        """The end of idleness."""
        self.idle = False


class WatermarkGenerator(ABC):
    """Makes watermarks from what it sees of a stream. One generator sees one split of a source, or one task's part of a stream."""

    follows_from_elements = False
    """Whether its periodic watermarks change with elements only, so that it need not be asked while none come."""

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called for each element. A watermark that is emitted here stands right after the element.

        :param event: the value
        :param event_timestamp: its timestamp in ms
        :param output: takes watermarks
        """

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called in intervals of processing time, for inputs that have no end.

        :param output: takes watermarks
        """

    def on_batch(self, batch: Batch, output: WatermarkOutput) -> Iterable[tuple[int, int]]:
        """See many elements.

        :param batch: the elements
        :param output: where :meth:`on_event` emits to
        :returns: watermarks: each with the number of elements of the batch that stand before it
        """
        found = []
        on_event = self.on_event
        for count, (value, timestamp) in enumerate(zip(batch.values, batch.timestamps, strict=True), 1):
            on_event(value, MIN_TIMESTAMP if timestamp is None else timestamp, output)
            if output.emitted is not None:
                found.append((count, output.emitted))
                output.emitted = None
        return found

    def snapshot_state(self) -> Any:
        """What has been seen.

        :returns: something that can be pickled
        """
        return dict(self.__dict__)

    def restore_state(self, state: Any) -> None:
        """Go on from what had been seen.

        :param state: what :meth:`snapshot_state` gave
        """
        self.__dict__.update(state)


class NoWatermarks(WatermarkGenerator):
    """Never emits one."""

    follows_from_elements = True

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Nothing follows from an element."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Nothing follows from time."""

    def on_batch(self, batch: Batch, output: WatermarkOutput) -> Iterable[tuple[int, int]]:
        """Nothing follows from elements."""
        return ()


class BoundedOutOfOrderness(WatermarkGenerator):
    """Elements are at most so far behind the latest one. The watermark is ``latest - delay - 1``: an element at the latest
    time is not late.

    :param delay: ms
    """

    follows_from_elements = True

    def __init__(self, delay: int) -> None:
        if delay < 0:
            raise StreamProgramError(f"The out-of-orderness is {delay} ms: it cannot be negative.")
        self.delay = delay
        self.latest = MIN_TIMESTAMP + delay + 1

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Remember the latest timestamp."""
        if event_timestamp > self.latest:
            self.latest = event_timestamp

    def on_batch(self, batch: Batch, output: WatermarkOutput) -> Iterable[tuple[int, int]]:
        """Remember the latest timestamp."""
        try:
            latest = max(batch.timestamps)  # type: ignore[type-var]
        except TypeError:
            latest = max((t for t in batch.timestamps if t is not None), default=None)
        if latest is not None and latest > self.latest:
            self.latest = latest
        return ()

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit what follows from the latest timestamp."""
        output.emit_watermark(self.latest - self.delay - 1)


@dataclass(frozen=True)
class TimestampsAndWatermarks:
    """How a stream gets event time.

    :param generator: makes a generator for each split
    :param assigner: gives the timestamp of a value; its second argument is the timestamp that the record had. None keeps the
        one that it had
    :param idle_after: a split without elements for so many ms holds nobody back; None for never
    """

    generator: Callable[[], WatermarkGenerator]
    assigner: Callable[[Any, int], int] | None = None
    idle_after: int | None = None


class Combination:
    """The watermark of several inputs: the minimum over those that are not idle. It never goes back.

    An input that has come to the end of time is neither idle nor waited for: nothing can follow in it. The combined watermark is
    the end of time when every input has come there. As long as one only is idle, its elements may still come, and would be
    late for ever.

    :param inputs: names of the inputs
    :param watermark: where it begins
    """

    def __init__(self, inputs: Iterable[Hashable], watermark: int = MIN_TIMESTAMP) -> None:
        self._watermarks: dict[Hashable, int] = dict.fromkeys(inputs, MIN_TIMESTAMP)
        self._idle: set[Hashable] = set()
        self._ended: set[Hashable] = set()
        self.watermark = watermark

    def add(self, name: Hashable, *, idle: bool = False) -> None:
        """There is one more input. Nothing is known of its event time.

        :param name: the input
        :param idle: whether it is idle
        """
        self._watermarks[name] = MIN_TIMESTAMP
        if idle:
            self._idle.add(name)

    def update(self, name: Hashable, watermark: int) -> bool:
        """An input has come so far.

        :param name: the input
        :param watermark: its watermark
        :returns: whether the combined one has moved
        """
        if watermark <= self._watermarks[name]:
            return False
        self._watermarks[name] = watermark
        return self._combine()

    def set_idle(self, name: Hashable, *, idle: bool) -> bool:
        """An input became idle, or active again.

        :param name: the input
        :param idle: which of the two
        :returns: whether the combined watermark has moved
        """
        if idle:
            self._idle.add(name)
        else:
            self._idle.discard(name)
        return self._combine()

    def end(self, name: Hashable) -> bool:
        """An input has ended.

        :param name: the input
        :returns: whether all have
        """
        self._ended.add(name)
        return len(self._ended) == len(self._watermarks)

    def is_idle(self, name: Hashable) -> bool:
        """Tell whether an input is idle.

        :param name: the input
        :returns: False at the end of time, where nothing is
        """
        return name in self._idle and self._watermarks[name] < MAX_TIMESTAMP

    @property
    def all_idle(self) -> bool:
        """Return True if every input that may go on is idle, so that this one is as well. At the end of time nothing is."""
        open_ones = self._open()
        return self._idle.issuperset(open_ones) and bool(open_ones or not self._watermarks)

    @property
    def all_ended(self) -> bool:
        """Whether every input has ended."""
        return len(self._ended) == len(self._watermarks)

    @property
    def is_held_back(self) -> bool:
        """Whether some input is ahead of the combined watermark."""
        return any(at > self.watermark for name, at in self._watermarks.items() if at == MAX_TIMESTAMP or name not in self._idle)

    def held_back_by(self) -> list[Hashable]:
        """Which inputs the combined watermark waits for: those that are furthest behind or, when all others are idle or have come
        to the end of time, those that are idle.

        :returns: their names
        """
        open_ones = self._open()
        waited_for = {name: at for name, at in open_ones.items() if name not in self._idle} or open_ones
        lowest = min(waited_for.values(), default=MAX_TIMESTAMP)
        return [name for name, at in waited_for.items() if at == lowest or name in self._idle]

    def _open(self) -> dict[Hashable, int]:
        """The watermarks of the inputs that have not come to the end of time."""
        return {name: at for name, at in self._watermarks.items() if at < MAX_TIMESTAMP}

    def _combine(self) -> bool:
        open_ones = self._open()
        active = [at for name, at in open_ones.items() if name not in self._idle]
        if open_ones and not active:
            return False
        lowest = min(active, default=MAX_TIMESTAMP)
        if lowest <= self.watermark or not self._watermarks:
            return False
        self.watermark = lowest
        return True

    def snapshot(self) -> Any:
        """How far the inputs have come.

        :returns: something that can be pickled
        """
        return (dict(self._watermarks), set(self._idle), set(self._ended), self.watermark)

    def restore(self, state: Any) -> None:
        """Go on from a snapshot. Inputs that it does not know begin where it was.

        :param state: what :meth:`snapshot` gave
        """
        watermarks, idle, ended, self.watermark = state
        for name in self._watermarks:
            self._watermarks[name] = watermarks.get(name, self.watermark)
        self._idle = {name for name in idle if name in self._watermarks}
        self._ended = {name for name in ended if name in self._watermarks}
