"""Timers. Each belongs to a key, a namespace, a time domain and a timestamp, and fires once."""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterator, Sequence
from typing import Any

from airflow_pipelines.streams.elements import MAX_TIMESTAMP
from airflow_pipelines.streams.keys import canonical_bytes
from airflow_pipelines.streams.state.entries import EVENT_TIME, NO_TIMERS, PROCESSING_TIME, Entry
from airflow_pipelines.streams.state.store import KeyedStore

_SHORT = 16
_SPARE = 1_000


class TimeDomain(enum.Enum):
    """The time domain of a timer.

    >>> from airflow_pipelines.datastream import KeyedProcessFunction, StreamExecutionEnvironment, TimeDomain
    >>> class Reminder(KeyedProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         ctx.timer_service().register_event_time_timer(60_000)
    ...     def on_timer(self, timestamp, ctx):
    ...         yield ctx.time_domain() is TimeDomain.EVENT_TIME
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> list(env.from_collection(["order"]).key_by(lambda value: value).process(Reminder()).execute_and_collect())
    [True]
    """

    EVENT_TIME = EVENT_TIME
    PROCESSING_TIME = PROCESSING_TIME


TIME_DOMAINS = tuple(TimeDomain)
"""The time domains by their numbers."""


class Timers:
    """The timers of all keys of one store.

    They fire in the order of their timestamps. The order of timers with the same timestamp follows from their keys.

    :param store: the store that keeps them
    """

    def __init__(self, store: KeyedStore) -> None:
        self._store = store
        self._heaps: tuple[list[int], list[int]] = ([], [])
        self._at: tuple[dict[int, list[tuple[Entry, Any]]], dict[int, list[tuple[Entry, Any]]]] = ({}, {})
        self._stale: tuple[dict[int, int], dict[int, int]] = ({}, {})
        store.timers = self

    def register(self, domain: int, timestamp: int, namespace: Any = None) -> None:
        """Register a timer for the current key. Has no effect if it exists already.

        :param domain: the time domain
        :param timestamp: ms
        :param namespace: the namespace of the timer
        """
        entry = self._store.entry
        timer = (domain, timestamp, namespace)
        if timer in entry.timers:
            return
        if entry.timers is NO_TIMERS:
            entry.timers = {timer}
        else:
            entry.timers.add(timer)
        if not entry.is_changed:
            entry.note_change()
        self._push(domain, timestamp, entry, namespace)

    def delete(self, domain: int, timestamp: int, namespace: Any = None) -> None:
        """Delete a timer of the current key, if it exists.

        :param domain: the time domain
        :param timestamp: ms
        :param namespace: the namespace of the timer
        """
        entry = self._store.entry
        timer = (domain, timestamp, namespace)
        if timer in entry.timers:
            entry.timers.discard(timer)
            if not entry.is_changed:
                entry.note_change()
            self._forget(domain, timestamp, entry, namespace)

    def _forget(self, domain: int, timestamp: int, entry: Entry, namespace: Any) -> None:
        """Remove a deleted timer from the queue.

        Many timers are deleted long before they would fire, and keys are evicted. If many timers have the same timestamp, stale
        ones are removed in bulk.
        """
        at = self._at[domain]
        waiting = at.get(timestamp)
        if waiting is None:
            return
        if len(waiting) > _SHORT:
            stale = self._stale[domain].get(timestamp, 0) + 1
            self._stale[domain][timestamp] = stale
            if 2 * stale < len(waiting):
                return
            left = [each for each in waiting if (domain, timestamp, each[1]) in each[0].timers]
        else:
            left = [each for each in waiting if each[0] is not entry or each[1] != namespace]
        if left:
            at[timestamp] = left
            self._stale[domain].pop(timestamp, None)
        else:
            self._drop(domain, timestamp)

    def _drop(self, domain: int, timestamp: int) -> None:
        """Remove a timestamp that no longer has a timer."""
        at, heap = self._at[domain], self._heaps[domain]
        del at[timestamp]
        self._stale[domain].pop(timestamp, None)
        if len(heap) > 2 * len(at) + _SPARE:
            heap[:] = at
            heapq.heapify(heap)

    def due(self, domain: int, until: int) -> Iterator[tuple[int, Entry, Any]]:
        """Remove and yield the timers that are due, including those that are registered meanwhile.

        The key of each timer becomes the current one.

        :param domain: the time domain
        :param until: the current time of the domain, in ms
        :returns: timestamp, entry and namespace of each timer
        """
        store = self._store
        store.load_due(domain, until)
        heap, at = self._heaps[domain], self._at[domain]
        while heap and heap[0] <= until:
            timestamp = heapq.heappop(heap)
            waiting = at.pop(timestamp, ())
            self._stale[domain].pop(timestamp, None)
            for entry, namespace in _in_order(waiting):
                timer = (domain, timestamp, namespace)
                if timer in entry.timers:
                    entry.timers.discard(timer)
                    if not entry.is_changed:
                        entry.note_change()
                    store.entry = entry
                    yield timestamp, entry, namespace

    def latest(self, domain: int) -> int | None:
        """Return the timestamp of the latest timer.

        :param domain: the time domain
        :returns: timestamp in ms, None if there is no timer
        """
        self._store.load_due(domain, MAX_TIMESTAMP)
        return max(self._heaps[domain], default=None)

    def next_due(self, domain: int) -> int | None:
        """Return the timestamp of the next timer.

        :param domain: the time domain
        :returns: timestamp in ms, None if there is no timer
        """
        heap, at = self._heaps[domain], self._at[domain]
        while heap and not any((domain, heap[0], namespace) in entry.timers for entry, namespace in at.get(heap[0], ())):
            timestamp = heapq.heappop(heap)
            at.pop(timestamp, None)
            self._stale[domain].pop(timestamp, None)
        stored = self._store.next_stored_due(domain)
        hot = heap[0] if heap else None
        return hot if stored is None else stored if hot is None else min(hot, stored)

    def _push(self, domain: int, timestamp: int, entry: Entry, namespace: Any) -> None:
        waiting = self._at[domain].get(timestamp)
        if waiting is None:
            self._at[domain][timestamp] = [(entry, namespace)]
            heapq.heappush(self._heaps[domain], timestamp)
        else:
            waiting.append((entry, namespace))

    def add_timers(self, entry: Entry) -> None:
        """Add the timers of an entry that becomes hot."""
        for domain, timestamp, namespace in entry.timers:
            self._push(domain, timestamp, entry, namespace)

    def remove_timers(self, entry: Entry) -> None:
        """Remove the timers of an entry that goes to rest."""
        timers, entry.timers = entry.timers, NO_TIMERS
        for domain, timestamp, namespace in timers:
            self._forget(domain, timestamp, entry, namespace)


def _in_order(waiting: Sequence[tuple[Entry, Any]]) -> Sequence[tuple[Entry, Any]]:
    if len(waiting) < 2:
        return waiting
    try:
        return sorted(waiting, key=lambda each: (each[0].data, each[1]))
    except TypeError:  # namespaces that cannot be compared
        return sorted(waiting, key=lambda each: (each[0].data, b"" if each[1] is None else canonical_bytes(each[1])))
