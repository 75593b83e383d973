"""Operators that read the splits of a source, and generate event time for their elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_pipelines.streams.elements import MAX_TIMESTAMP, Batch
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import note_operator
from airflow_pipelines.streams.known_splits import KnownSplits
from airflow_pipelines.streams.operators.base import Operator, OperatorSpec, Timestamps
from airflow_pipelines.streams.operators.event_time import EventTime
from airflow_pipelines.streams.sources import Source, SourceReader
from airflow_pipelines.streams.watermarks import Combination, TimestampsAndWatermarks


@dataclass(frozen=True)
class Read(OperatorSpec):
    """An operator that reads a source.

    :param source: the source
    :param event_time: the strategy for event time; None keeps the timestamps of the source
    """

    source: Source
    event_time: TimestampsAndWatermarks | None = None
    kind = "Data Source"

    def create(self) -> Operator:
        """Create one parallel instance."""
        return SourceOperator(self)

    def state_of_task(self, states: Sequence[Any], index: int, parallelism: int) -> Any:
        """Return the state of all splits: a task reads those that belong to its number."""
        merged: dict[int, Any] = {}
        descriptions, _, *places = states[0]
        for _, kept, *_ in states:
            merged.update(kept)
        return descriptions, merged, *places

    @property
    def has_watermark_strategy(self) -> bool:  # type: ignore[override]
        """True if the source has its own strategy."""
        return self.event_time is not None

    def timestamps(self) -> Timestamps:
        """Return that the timestamps are those of the strategy or of the source, if either has any."""
        has_assigner = self.event_time is not None and self.event_time.assigner is not None
        return Timestamps.OWN if has_assigner or self.source.gives_timestamps else Timestamps.NONE

    def user_objects(self) -> Mapping[str, Any]:
        """Return the source and its watermark strategy."""
        return {"source": self.source, "watermark strategy": self.event_time}


@dataclass
class _Split:
    number: int
    reader: SourceReader
    event_time: EventTime | None
    finished: bool = False
    had_input: bool = True


class SourceOperator(Operator):
    """A parallel instance that reads the splits of one task, one after the other in each step.

    :param spec: the specification with the source
    """

    def __init__(self, spec: Read) -> None:
        super().__init__()
        self._spec = spec
        self._splits: list[_Split] = []
        self._descriptions: Sequence[Any] | None = None
        self._combination: Combination
        self._idle = False
        self._ended = False
        self._is_stopped = False
        self.known_splits: KnownSplits | None = None
        """The splits that the tasks of one process share. If none are given, they are created when the operator is opened."""

    def open(self, state: Any | None) -> None:
        """Open the readers of this task at their positions."""
        kept: dict[int, tuple[Any, Any, bool]] = {}
        self._combination = Combination((), self.current_watermark)
        known = self.known_splits = self.known_splits or KnownSplits(self._spec.source, self.context.subtask.parallelism)
        if state is None:
            descriptions = known.first()
        else:
            descriptions, kept, *_ = state
            known.go_on_with(descriptions or ())
        if descriptions is not None:
            self._add_splits(descriptions, kept)
            self._idle = state is not None and self._combination.all_idle

    @property
    def own_idleness(self) -> bool:
        """True if none of its splits holds event time back."""
        return self._idle

    @property
    def number_of_splits(self) -> int | None:
        """The number of splits of the source, in all tasks; None while that is not known."""
        return None if self._descriptions is None else len(self._descriptions)

    def is_at_end_of(self, number: int) -> bool:
        """Return True if a split has ended.

        :param number: the number of the split
        """
        return any(split.finished for split in self._splits if split.number == number)

    def appear(self, descriptions: Sequence[Any]) -> None:
        """Add the splits of the source that have become known.

        :param descriptions: all splits, beginning with those that were known before
        """
        self._add_splits(descriptions, {})

    def _add_splits(self, descriptions: Sequence[Any], kept: Mapping[int, tuple[Any, Any, bool]]) -> None:
        subtask = self.context.subtask
        known = 0 if self._descriptions is None else len(self._descriptions)
        self._descriptions = tuple(descriptions)
        added = [
            self._open_split(number, descriptions[number], *kept.get(number, (None, None, False)))
            for number in range(known, len(descriptions))
            if number % subtask.parallelism == subtask.index
        ]
        self._splits += added
        for split in added:
            self._combination.add(split.number, idle=split.event_time is not None and split.event_time.is_idle)
        for split in added:
            if split.event_time is not None:
                self._combination.update(split.number, split.event_time.watermark)
            if split.finished:
                self._combination.update(split.number, MAX_TIMESTAMP)

    def _open_split(self, number: int, description: Any, position: Any, event_time_state: Any, finished: bool) -> _Split:
        event_time = None if self._spec.event_time is None else EventTime(self._spec.event_time, self.context)
        if event_time is not None and event_time_state is not None:
            event_time.restore(event_time_state)
        return _Split(number, self._spec.source.open_in(self.context.subtask, description, position), event_time, finished)

    @property
    def has_ended(self) -> bool:
        """True if nothing will follow."""
        return self._ended

    def inputs(self) -> tuple[Combination, dict[object, str]]:
        """Return the event time of each split.

        :returns: watermarks, and names of the splits
        """
        return self._combination, {split.number: f"split {split.number}" for split in self._splits}

    def stop_reading(self) -> None:
        """End the input at its current position."""
        self._descriptions = self._descriptions or ()
        self._is_stopped = True
        for split in self._splits:
            split.finished = True

    def poll(self, limits: Mapping[int, int], default: int) -> int:
        """Read the available elements.

        :param limits: the maximum number of elements to read from a split, by its number
        :param default: the maximum for all other splits
        :returns: the number of elements that were read
        """
        number = 0
        self._look_for_splits()
        for split in self._splits:
            if not split.finished:
                self._look_for_input(split)
                number += self._poll_split(split, limits.get(split.number, default))
        self._tell_idleness()
        if not self._ended and self._has_nothing_left:
            self._ended = True
            if self.current_watermark < MAX_TIMESTAMP:
                self._advance(MAX_TIMESTAMP)
        return number

    @property
    def _has_nothing_left(self) -> bool:
        if self._descriptions is None or (self._spec.source.look_interval is not None and not self._is_stopped):
            return False
        return all(split.finished for split in self._splits)

    def _look_for_splits(self) -> None:
        if self._descriptions is None or self._is_stopped or self.known_splits is None:
            return
        try:
            descriptions = self.known_splits.look()
            if len(descriptions) > len(self._descriptions):
                self._add_splits(descriptions, {})
        except Exception as error:
            note_operator(error, self.name, "looking for splits that have appeared")
            raise

    def _look_for_input(self, split: _Split) -> None:
        if split.reader.has_input != split.had_input:
            split.had_input = split.reader.has_input
            if self._combination.set_idle(split.number, idle=not split.had_input):
                self._advance(self._combination.watermark)
            self._tell_idleness()

    def _poll_split(self, split: _Split, limit: int) -> int:
        if limit <= 0:
            return 0
        try:
            polled = split.reader.poll(limit)
        except Exception as error:
            note_operator(error, self.name, f"reading split {split.number}")
            raise
        self._look_for_input(split)
        if polled.values:
            timestamps: list[int | None] = [None] * len(polled.values) if polled.timestamps is None else polled.timestamps
            self._give(split, Batch(polled.values, timestamps))
        if polled.finished:
            split.finished = True
            if self._combination.update(split.number, MAX_TIMESTAMP):
                self._advance(self._combination.watermark)
        return len(polled.values)

    def _give(self, split: _Split, batch: Batch) -> None:
        if split.event_time is None:
            self.output.emit(batch)
            return
        if split.event_time.is_idle:
            has_moved = self._combination.set_idle(split.number, idle=False)
            self._tell_idleness()
            if has_moved:  # all were idle, and this one is ahead of where they were
                self._advance(self._combination.watermark)
        start = 0
        batch, watermarks = split.event_time.see(batch)
        for count, watermark in watermarks:
            if count > start:
                self.output.emit(batch.select(range(start, count)))
                start = count
            if self._combination.update(split.number, watermark):
                self._advance(self._combination.watermark)
        if start == 0:
            self.output.emit(batch)
        elif start < len(batch):
            self.output.emit(batch.select(range(start, len(batch))))

    def processing_time(self, now: int) -> None:
        """Emit periodic watermarks, and detect idle splits."""
        for split in self._splits:
            if split.event_time is None or split.finished:
                continue
            watermark = split.event_time.tick(now)
            if watermark is not None and self._combination.update(split.number, watermark):
                self._advance(self._combination.watermark)
            if split.event_time.is_idle and self._combination.set_idle(split.number, idle=True):
                self._advance(self._combination.watermark)
        self._tell_idleness()

    def next_due(self) -> int | None:
        """Return the time at which the next periodic watermark is due, or the next split may become idle."""
        due = [split.event_time.next_due() for split in self._splits if split.event_time is not None and not split.finished]
        return min((each for each in due if each is not None), default=None)

    def process(self, batch: Batch, port: int) -> None:
        """Refuse records: a source has no input."""
        raise StreamProgramError(f"The source {self.name!r} has no input.")

    def _advance(self, timestamp: int) -> None:
        self.current_watermark = timestamp
        self.output.watermark(timestamp)

    def _tell_idleness(self) -> None:
        # A task without splits is idle, once the splits are known.
        idle = self._descriptions is not None and self._combination.all_idle
        if idle != self._idle:
            self._idle = idle
            self.output.idleness(idle=idle)

    def snapshot(self) -> Any:
        """Return the positions and the event time of all splits, and the places that the positions refer to."""
        kept = {
            split.number: (
                split.reader.position(),
                None if split.event_time is None else split.event_time.snapshot(),
                split.finished,
            )
            for split in self._splits
        }
        self._prepared = [(split.reader, kept[split.number][0]) for split in self._splits]
        return self._descriptions, kept, tuple(self._spec.source.places)

    def notify_checkpoint_complete(self) -> None:
        """Tell the readers up to which position everything is durable."""
        for reader, position in getattr(self, "_prepared", ()):
            reader.commit(position)

    def close(self) -> None:
        """Close the readers."""
        for split in self._splits:
            split.reader.close()
