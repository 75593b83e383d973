"""Assignment of timestamps to elements, and generation of watermarks from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import last_given, note_element
from airflow_pipelines.streams.operators.base import Operator, OperatorContext, OperatorSpec, Timestamps
from airflow_pipelines.streams.watermarks import TimestampsAndWatermarks, WatermarkOutput


class EventTime:
    """The event time of one sequence of elements: a split of a source, or the input of one task.

    Bounded inputs get no periodic watermarks: these would depend on how fast the input is read, and so would the results.

    :param strategy: the strategy for timestamps and watermarks
    :param context: the context of the operator
    """

    def __init__(self, strategy: TimestampsAndWatermarks, context: OperatorContext) -> None:
        self._assign = strategy.assigner
        self._generator = strategy.generator()
        self._idle_after = strategy.idle_after
        self._context = context
        self._output = WatermarkOutput()
        self._interval = 0 if context.is_input_bounded else context.settings.watermark_interval
        self._next_emission = context.clock.now + self._interval
        self._last_element = context.clock.now
        self._has_news = False
        self.is_idle = False
        self.watermark = MIN_TIMESTAMP

    def see(self, batch: Batch) -> tuple[Batch, list[tuple[int, int]]]:
        """Process elements.

        :param batch: the elements
        :returns: the elements with their timestamps, and watermarks with the number of elements that come before them
        """
        self._last_element = self._context.clock.now
        self.is_idle = False
        self._has_news = True
        if self._assign is not None:
            batch = Batch(batch.values, self._assign_timestamps(batch, self._assign))
        return batch, self._select_later(self._generator.on_batch(batch, self._output))

    def _assign_timestamps(self, batch: Batch, assign: Any) -> list[int | None]:
        values = iter(batch.values)
        earlier = [MIN_TIMESTAMP if timestamp is None else timestamp for timestamp in batch.timestamps]
        try:
            assigned: list[int | None] = list(map(assign, values, earlier))
        except Exception as error:
            note_element(error, self._context.subtask.name, last_given(batch.values, values))
            raise
        if not set(map(type, assigned)) <= {int}:
            for position, timestamp in enumerate(assigned):
                assigned[position] = self._whole(timestamp, batch.values[position])
        return assigned

    def _whole(self, timestamp: Any, value: Any) -> int:
        try:
            return timestamp.__index__()  # type: ignore[no-any-return]
        except AttributeError:
            raise StreamProgramError(
                f"The timestamp assigner of {self._context.subtask.name!r} returned {timestamp!r} for the element {value!r}:"
                " it must return a whole number of milliseconds, as int(seconds * 1000)."
            ) from None

    def _select_later(self, watermarks: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        later = []
        for count, watermark in watermarks:
            if watermark > self.watermark:
                self.watermark = watermark
                later.append((count, watermark))
        return later

    def tick(self, now: int) -> int | None:
        """Advance processing time.

        :param now: ms
        :returns: a later watermark, None if there is none
        """
        # If the clock went back, do not delay everything until it has caught up.
        self._next_emission = min(self._next_emission, now + self._interval)
        self._last_element = min(self._last_element, now)
        if self._idle_after is not None and now - self._last_element >= self._idle_after:
            self.is_idle = True
        if not self._interval or now < self._next_emission:
            return None
        self._next_emission = now + self._interval
        self._has_news = False
        self._generator.on_periodic_emit(self._output)
        emitted, self._output.emitted = self._output.emitted, None
        if self._output.idle:
            self.is_idle = True
        if emitted is None or emitted <= self.watermark:
            return None
        self.watermark = emitted
        return emitted

    def next_due(self) -> int | None:
        """Return the time at which :meth:`tick` may have an effect.

        :returns: processing time in ms, None for never
        """
        due = []
        if self._interval and (self._has_news or not self._generator.follows_from_elements):
            due.append(self._next_emission)
        if self._idle_after is not None and not self.is_idle:
            due.append(self._last_element + self._idle_after)
        return min(due, default=None)

    def snapshot(self) -> Any:
        """Return the state of event time.

        :returns: a value that can be pickled
        """
        now = self._context.clock.now
        return self.watermark, self._generator.snapshot_state(), self._place(now)

    def _place(self, now: int) -> tuple[int, int, bool, bool]:
        """Return the position relative to processing time."""
        return self._next_emission - now, now - self._last_element, self._has_news, self.is_idle

    def restore(self, state: Any) -> None:
        """Resume from a snapshot. The time between the snapshot and now does not count.

        :param state: the result of :meth:`snapshot`
        """
        now = self._context.clock.now
        self.watermark, generator, (until_emission, since_element, self._has_news, self.is_idle) = state
        self._next_emission = now + until_emission
        self._last_element = now - since_element
        self._generator.restore_state(generator)


@dataclass(frozen=True)
class AssignEventTime(OperatorSpec):
    """An operator that gives elements new timestamps and replaces watermarks, except the one at the end of time.

    :param strategy: the strategy for timestamps and watermarks
    """

    strategy: TimestampsAndWatermarks

    def create(self) -> Operator:
        """Create one parallel instance."""
        return _AssignEventTime(self.strategy)

    def state_of_task(self, states: Sequence[Any], index: int, parallelism: int) -> Any:
        """Return the state with the lowest watermark."""
        return min(states, key=lambda state: state[0])

    has_watermark_strategy = True

    def timestamps(self) -> Timestamps:
        """Return that the timestamps are those of the strategy, or those that elements already have."""
        return Timestamps.OF_INPUT if self.strategy.assigner is None else Timestamps.OWN

    def user_objects(self) -> Mapping[str, Any]:
        """Return the watermark strategy."""
        return {"watermark strategy": self.strategy}


class _AssignEventTime(Operator):
    def __init__(self, strategy: TimestampsAndWatermarks) -> None:
        super().__init__()
        self._strategy = strategy
        self._told_idle = False
        self._is_input_idle = False

    def open(self, state: Any | None) -> None:
        self._event_time = EventTime(self._strategy, self.context)
        if state is not None:
            self._event_time.restore(state)
            self._told_idle = self._event_time.is_idle

    @property
    def own_idleness(self) -> bool:
        """True if the output was last announced as idle.

        That is so if no element has come for long, or if the input is idle and there was no watermark yet.
        """
        return self._told_idle

    def process(self, batch: Batch, port: int) -> None:
        batch, watermarks = self._event_time.see(batch)
        self._tell_idleness()
        start = 0
        for count, watermark in watermarks:
            if count > start:
                self.output.emit(batch.select(range(start, count)))
                start = count
            self._advance(watermark)
        if start == 0:
            self.output.emit(batch)
        elif start < len(batch):
            self.output.emit(batch.select(range(start, len(batch))))

    def watermark(self, timestamp: int) -> None:
        if timestamp == MAX_TIMESTAMP:
            self._advance(timestamp)

    def idleness(self, *, idle: bool) -> None:
        """Handle idleness of the input.

        The output is idle with the input only until the first watermark; then its idleness follows from the elements alone.
        """
        self._is_input_idle = idle
        self._tell_idleness()

    def processing_time(self, now: int) -> None:
        watermark = self._event_time.tick(now)
        if watermark is not None:
            self._advance(watermark)
        self._tell_idleness()

    def next_due(self) -> int | None:
        return self._event_time.next_due()

    def _advance(self, timestamp: int) -> None:
        # Watermarks of the last elements may be behind the end of time.
        if timestamp > self.current_watermark:
            self.current_watermark = timestamp
            self.output.watermark(timestamp)

    def _tell_idleness(self) -> None:
        nothing_yet = self._is_input_idle and self._event_time.watermark == MIN_TIMESTAMP
        idle = self._event_time.is_idle or nothing_yet
        if idle != self._told_idle:
            self._told_idle = idle
            self.output.idleness(idle=self._told_idle)

    def snapshot(self) -> Any:
        return self._event_time.snapshot()
