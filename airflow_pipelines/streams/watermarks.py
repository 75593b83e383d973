"""Watermarks: their generation from elements and timestamps, and the combination of the watermarks of several inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch
from airflow_pipelines.streams.errors import StreamProgramError


class WatermarkOutput:
    """The output that receives the watermarks of a generator, after an element or after an interval."""

    __slots__ = ("emitted", "idle")

    def __init__(self) -> None:
        self.emitted: int | None = None
        self.idle = False

    def emit_watermark(self, timestamp: Any) -> None:
        """Emit a watermark: no element with this timestamp or an earlier one is expected any more.

        :param timestamp: ms, or an object with ms in its attribute ``timestamp``
        """
        value = timestamp if timestamp.__class__ is int else int(getattr(timestamp, "timestamp", timestamp))
        if self.emitted is None or value > self.emitted:
            self.emitted = value
        self.idle = False

    def mark_idle(self) -> None:
        """Mark the stream as idle, so that it does not hold back the watermark of its readers."""
        self.idle = True

    def mark_active(self) -> None:
        """Mark the stream as active again."""
        self.idle = False


class WatermarkGenerator(ABC):
    """A generator of watermarks for a stream. One generator sees one split of a source, or one task's part of a stream."""

    follows_from_elements = False
    """True if its periodic watermarks change only with elements, so that it need not be asked while none arrive."""

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Process an element. A watermark that is emitted here comes right after the element.

        :param event: the value
        :param event_timestamp: its timestamp in ms
        :param output: the output for watermarks
        """

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit a watermark if there is one. Called at intervals of processing time, for unbounded inputs.

        :param output: the output for watermarks
        """

    def on_batch(self, batch: Batch, output: WatermarkOutput) -> Iterable[tuple[int, int]]:
        """Process a batch of elements.

        :param batch: the elements
        :param output: the output to which :meth:`on_event` emits
        :returns: watermarks, each with the number of elements of the batch that come before it
        """
        emitted = []
        on_event = self.on_event
        for count, (value, timestamp) in enumerate(zip(batch.values, batch.timestamps, strict=True), 1):
            on_event(value, MIN_TIMESTAMP if timestamp is None else timestamp, output)
            if output.emitted is not None:
                emitted.append((count, output.emitted))
                output.emitted = None
        return emitted

    def snapshot_state(self) -> Any:
        """Return the state of the generator.

        :returns: a value that can be pickled
        """
        return dict(self.__dict__)

    def restore_state(self, state: Any) -> None:
        """Resume from a state.

        :param state: the result of :meth:`snapshot_state`
        """
        self.__dict__.update(state)


class NoWatermarks(WatermarkGenerator):
    """A generator that never emits a watermark."""

    follows_from_elements = True

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Ignore an element."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit nothing."""

    def on_batch(self, batch: Batch, output: WatermarkOutput) -> Iterable[tuple[int, int]]:
        """Ignore the elements."""
        return ()


class BoundedOutOfOrderness(WatermarkGenerator):
    """A generator for elements that are behind the latest one by at most a fixed delay.

    The watermark is ``latest - delay - 1``: an element exactly ``delay`` behind the latest one is not late.

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
        """Emit the watermark that follows from the latest timestamp."""
        output.emit_watermark(self.latest - self.delay - 1)


@dataclass(frozen=True)
class TimestampsAndWatermarks:
    """The strategy by which a stream gets event time.

    :param generator: a function that makes a generator for each split
    :param assigner: a function that returns the timestamp of a value; its second argument is the timestamp that the record had.
        None keeps that timestamp
    :param idle_after: the number of ms without elements after which a split is idle; None for never
    """

    generator: Callable[[], WatermarkGenerator]
    assigner: Callable[[Any, int], int] | None = None
    idle_after: int | None = None


class Combination:
    """The combined watermark of several inputs: the minimum over those that are not idle. It never goes back.

    An input that has reached the end of time is neither idle nor waited for: nothing can follow in it. The combined watermark is
    the end of time when every input has reached it. As long as one input is merely idle, its elements may still arrive, and would
    be late for ever.

    :param inputs: the names of the inputs
    :param watermark: the initial watermark
    """

    def __init__(self, inputs: Iterable[Hashable], watermark: int = MIN_TIMESTAMP) -> None:
        self._watermarks: dict[Hashable, int] = dict.fromkeys(inputs, MIN_TIMESTAMP)
        self._idle: set[Hashable] = set()
        self._ended: set[Hashable] = set()
        self.watermark = watermark

    def add(self, name: Hashable, *, idle: bool = False) -> None:
        """Add an input. Its event time is not known yet.

        :param name: the input
        :param idle: True if it is idle
        """
        self._watermarks[name] = MIN_TIMESTAMP
        if idle:
            self._idle.add(name)

    def update(self, name: Hashable, watermark: int) -> bool:
        """Update the watermark of an input.

        :param name: the input
        :param watermark: its watermark
        :returns: True if the combined watermark has advanced
        """
        if watermark <= self._watermarks[name]:
            return False
        self._watermarks[name] = watermark
        return self._combine()

    def set_idle(self, name: Hashable, *, idle: bool) -> bool:
        """Mark an input as idle or active.

        :param name: the input
        :param idle: True for idle, False for active
        :returns: True if the combined watermark has advanced
        """
        if idle:
            self._idle.add(name)
        else:
            self._idle.discard(name)
        return self._combine()

    def end(self, name: Hashable) -> bool:
        """Mark an input as ended.

        :param name: the input
        :returns: True if all inputs have ended
        """
        self._ended.add(name)
        return len(self._ended) == len(self._watermarks)

    def is_idle(self, name: Hashable) -> bool:
        """Return True if an input is idle.

        :param name: the input
        :returns: False at the end of time, where no input is idle
        """
        return name in self._idle and self._watermarks[name] < MAX_TIMESTAMP

    @property
    def all_idle(self) -> bool:
        """True if every input that may continue is idle, so that the combination is idle as well. False at the end of time."""
        open_ones = self._open()
        return self._idle.issuperset(open_ones) and bool(open_ones or not self._watermarks)

    @property
    def is_held_back(self) -> bool:
        """True if some input is ahead of the combined watermark."""
        return any(at > self.watermark for name, at in self._watermarks.items() if at == MAX_TIMESTAMP or name not in self._idle)

    def held_back_by(self) -> list[Hashable]:
        """Return the inputs that the combined watermark waits for.

        These are the inputs that are furthest behind or, if all others are idle or have reached the end of time, those that are
        idle.

        :returns: their names
        """
        open_ones = self._open()
        waited_for = {name: at for name, at in open_ones.items() if name not in self._idle} or open_ones
        lowest = min(waited_for.values(), default=MAX_TIMESTAMP)
        return [name for name, at in waited_for.items() if at == lowest or name in self._idle]

    def _open(self) -> dict[Hashable, int]:
        """Return the watermarks of the inputs that have not reached the end of time."""
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
        """Return the state of the inputs.

        :returns: a value that can be pickled
        """
        return (dict(self._watermarks), set(self._idle), set(self._ended), self.watermark)

    def restore(self, state: Any) -> None:
        """Resume from a snapshot. Inputs that it does not contain begin at its combined watermark.

        :param state: the result of :meth:`snapshot`
        """
        watermarks, idle, ended, self.watermark = state
        for name in self._watermarks:
            self._watermarks[name] = watermarks.get(name, self.watermark)
        self._idle = {name for name in idle if name in self._watermarks}
        self._ended = {name for name in ended if name in self._watermarks}
