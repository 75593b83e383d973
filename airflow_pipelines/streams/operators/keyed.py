"""The common base of operators with keys: the current key, and timers."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any

from airflow_pipelines.streams.elements import MAX_TIMESTAMP, MIN_TIMESTAMP
from airflow_pipelines.streams.errors import FunctionTimeLimitError, NoKeyError
from airflow_pipelines.streams.failures import note_element
from airflow_pipelines.streams.operators.base import Operator
from airflow_pipelines.streams.operators.collector import Collector
from airflow_pipelines.streams.process_functions import TimerService
from airflow_pipelines.streams.state.entries import EVENT_TIME, PROCESSING_TIME, Entry
from airflow_pipelines.streams.state.store import KeyedStore
from airflow_pipelines.streams.timers import Timers

_LOOK_EVERY = 1024


class KeyedOperator(Operator):
    """An operator that keeps state and timers by key."""

    store: KeyedStore
    timers: Timers
    collector: Collector

    def open(self, state: Any | None) -> None:
        """Prepare the state and the timers of this task."""
        assert self.context.store is not None  # noqa: S101 (the loop gives one to operators with keys)
        self.store = self.context.store
        self.timers = Timers(self.store)
        self.collector = Collector(self.context, self.output)

    @abstractmethod
    def on_timer(self, domain: int, timestamp: int, entry: Entry, namespace: Any) -> None:
        """Process a timer that fires. Its key is the current one.

        :param domain: the time domain
        :param timestamp: the timestamp for which it was registered
        :param entry: the state of its key
        :param namespace: the namespace of the timer
        """

    def watermark(self, timestamp: int) -> None:
        """Fire the timers that are due, then pass the watermark on."""
        self.current_watermark = timestamp
        self._fire(EVENT_TIME, timestamp)
        self.output.watermark(timestamp)

    def processing_time(self, now: int) -> None:
        """Fire the timers that are due."""
        self._fire(PROCESSING_TIME, now)

    def _fire(self, domain: int, until: int) -> None:
        ending = _Ending(self, domain) if until == MAX_TIMESTAMP else None
        for timestamp, entry, namespace in self.timers.due(domain, until):
            if ending is not None:
                ending.look(timestamp)
            try:
                self.on_timer(domain, timestamp, entry, namespace)
            except Exception as error:
                note_element(error, self.name, timestamp, f"timer of the key {entry.key!r} at")
                raise
        self.collector.flush()

    def next_due(self) -> int | None:
        """Return the timestamp of the next processing-time timer."""
        return self.timers.next_due(PROCESSING_TIME)

    def end_of_key(self) -> None:
        """Handle the end of time for one key: fire its timers and drop its state."""
        self.current_watermark = MAX_TIMESTAMP
        self._fire(EVENT_TIME, MAX_TIMESTAMP)
        self._fire(PROCESSING_TIME, MAX_TIMESTAMP)
        self.current_watermark = MIN_TIMESTAMP
        for entry in self.store.entries():
            self.store.drop(entry)


class _Ending:
    """A guard for timers at the end of time, where timers that always register a later one would go on for ever."""

    def __init__(self, operator: KeyedOperator, domain: int) -> None:
        self._operator = operator
        self._last = operator.timers.latest(domain)
        self._began: float | None = None
        self._number = 0

    def look(self, timestamp: int) -> None:
        """Check a timer that fires.

        :param timestamp: the timestamp for which it was registered
        :raises FunctionTimeLimitError: if timers that were registered after the end go on for too long
        """
        if self._last is None or timestamp <= self._last:
            return
        self._number += 1
        if self._began is None:
            self._began = time.monotonic()
        elif self._number % _LOOK_EVERY == 0:
            self._operator.collector.flush()
            seconds = self._operator.context.settings.call_seconds
            if time.monotonic() - self._began > seconds:
                raise FunctionTimeLimitError(
                    f"The timers of {self._operator.name!r} register later ones for ever: the input has ended, so each fires at"
                    f" once."
                    f" That went on for {seconds:g} s. Register no timer when current_watermark() is {MAX_TIMESTAMP}."
                )


class KeyedTimers(TimerService):
    """The service for the time and for timers of the current key.

    :param operator: the operator that owns the timers
    """

    def __init__(self, operator: KeyedOperator) -> None:
        self._operator = operator
        self._timers = operator.timers
        self._clock = operator.context.clock

    def current_processing_time(self) -> int:
        """Return the processing time."""
        return self._clock.now

    def current_watermark(self) -> int:
        """Return the current watermark."""
        return self._operator.current_watermark

    def register_event_time_timer(self, timestamp: int) -> None:
        """Register an event-time timer."""
        self._timers.register(EVENT_TIME, timestamp)

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Register a processing-time timer."""
        self._timers.register(PROCESSING_TIME, timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete an event-time timer."""
        self._timers.delete(EVENT_TIME, timestamp)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete a processing-time timer."""
        self._timers.delete(PROCESSING_TIME, timestamp)


class TimeOnly(TimerService):
    """The service for the time on a stream without keys, which has no timers.

    :param operator: the operator whose time it tells
    """

    def __init__(self, operator: Operator) -> None:
        self._operator = operator

    def current_processing_time(self) -> int:
        """Return the processing time."""
        return self._operator.context.clock.now

    def current_watermark(self) -> int:
        """Return the current watermark."""
        return self._operator.current_watermark

    def _refuse(self) -> None:
        raise NoKeyError(
            f"The operator {self._operator.name!r} asks for a timer. Timers belong to a key, and its stream has no keys."
            " Put key_by(...) before it."
        )

    def register_event_time_timer(self, timestamp: int) -> None:
        """Refuse the timer."""
        self._refuse()

    def register_processing_time_timer(self, timestamp: int) -> None:
        """Refuse the timer."""
        self._refuse()

    def delete_event_time_timer(self, timestamp: int) -> None:
        """Refuse the deletion."""
        self._refuse()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Refuse the deletion."""
        self._refuse()
