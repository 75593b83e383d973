"""Exchanges, which bring the output of a chain to the tasks that read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_pipelines.streams.elements import Batch, Element, Idleness, Watermark
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import last_given, note_element
from airflow_pipelines.streams.graph.nodes import Exchange, ExchangeKind
from airflow_pipelines.streams.keys import task_of
from airflow_pipelines.streams.values import isolate_all

_REMEMBERED_KEYS = 200_000


class _TaskOfKey(dict[Any, int]):
    """The tasks of keys, remembered for the keys that came lately."""

    def __init__(self, tasks: int, max_parallelism: int) -> None:
        super().__init__()
        self._tasks = tasks
        self._max_parallelism = max_parallelism

    def __missing__(self, key: Any) -> int:
        task = task_of(key, self._tasks, self._max_parallelism)
        if len(self) >= _REMEMBERED_KEYS:
            self.clear()
        self[key] = task
        return task


class ExchangeWriter:
    """A writer that sorts the elements of one upstream task by the tasks that read them.

    :param exchange: the exchange, which decides which task gets an element
    :param reader: the name of the reading operator, for messages
    :param upstream: the number of this task, and the number of upstream tasks
    :param tasks: the number of tasks that read
    :param max_parallelism: the number of key groups of the reading operator
    """

    def __init__(self, exchange: Exchange, reader: str, upstream: tuple[int, int], tasks: int, max_parallelism: int) -> None:
        self._exchange = exchange
        self._reader = reader
        self._upstream, self._upstreams = upstream
        self._tasks = tasks
        self._max_parallelism = max_parallelism
        self._next = 0
        self._known = _TaskOfKey(tasks, max_parallelism)
        self._waiting: list[list[Element]] = [[] for _ in range(tasks)]
        self._send = self._choose_sender()

    def emit(self, batch: Batch) -> None:
        """Write records."""
        self._send(batch)

    def watermark(self, timestamp: int) -> None:
        """Write a watermark."""
        self.control(Watermark(timestamp))

    def idleness(self, *, idle: bool) -> None:
        """Announce that the output becomes idle, or active again."""
        self.control(Idleness(idle))

    def control(self, element: Element) -> None:
        """Write an element that every reader must get.

        :param element: the element; not a batch
        """
        if self._exchange.kind is ExchangeKind.FORWARD:
            self._waiting[self._upstream].append(element)
            return
        for waiting in self._waiting:
            waiting.append(element)

    def take(self) -> list[list[Element]]:
        """Return the elements that were written since the last call.

        :returns: the elements, by the number of the reading task
        """
        taken, self._waiting = self._waiting, [[] for _ in range(self._tasks)]
        return taken

    def position(self) -> int:
        """Return the position in the order of turns.

        :returns: a number for :meth:`restore`
        """
        return self._next

    def restore(self, position: int) -> None:
        """Continue at a position in the order of turns.

        :param position: the result of :meth:`position`
        """
        self._next = position

    def _choose_sender(self) -> Callable[[Batch], None]:
        kind = self._exchange.kind
        if kind is ExchangeKind.HASH:
            return self._send_by_key
        if kind is ExchangeKind.CUSTOM:
            return self._custom
        if kind is ExchangeKind.BROADCAST:
            return self._send_to_all
        if kind is ExchangeKind.FORWARD:
            return lambda batch: self._waiting[self._upstream].append(batch)
        if self._tasks == 1 or kind is ExchangeKind.GLOBAL:
            return lambda batch: self._waiting[0].append(batch)
        if kind is ExchangeKind.SHUFFLE:
            return self._shuffle
        if kind is ExchangeKind.RESCALE:
            return self._rescale
        return lambda batch: self._send_in_turns(batch, 0, self._tasks)

    def _keys(self, batch: Batch) -> list[Any]:
        values = iter(batch.values)
        selector = self._exchange.selector
        assert selector is not None  # noqa: S101 (an exchange by key has one)
        try:
            return list(map(selector, values))
        except Exception as error:
            note_element(error, self._reader, last_given(batch.values, values))
            raise

    def _send_by_key(self, batch: Batch) -> None:
        batch = Batch(batch.values, batch.timestamps, self._keys(batch))
        if self._tasks == 1:
            self._waiting[0].append(batch)
            return
        keys = batch.keys or []
        try:
            targets = list(map(self._known.__getitem__, keys))
        except (TypeError, StreamProgramError):  # a key without a hash, or one that cannot be a key
            targets = [self._task_of_key(key, value) for key, value in zip(keys, batch.values, strict=True)]
        self._distribute(batch, targets)

    def _task_of_key(self, key: Any, value: Any) -> int:
        try:
            return task_of(key, self._tasks, self._max_parallelism)
        except StreamProgramError as error:
            note_element(error, self._reader, value)
            raise

    def _custom(self, batch: Batch) -> None:
        partitioner = self._exchange.partitioner
        assert partitioner is not None  # noqa: S101 (a custom exchange has one)
        targets = []
        for value, key in zip(batch.values, self._keys(batch), strict=True):
            try:
                task = partitioner(key, self._tasks)
            except Exception as error:
                note_element(error, self._reader, value)
                raise
            if not isinstance(task, int) or not 0 <= task < self._tasks:
                raise StreamProgramError(
                    f"The partitioner before {self._reader!r} returned {task!r} for the key {key!r}:"
                    f" it must return a number from 0 to {self._tasks - 1} (it is given {self._tasks} as the number of tasks)."
                )
            targets.append(task)
        self._distribute(batch, targets)

    def _send_to_all(self, batch: Batch) -> None:
        for waiting in self._waiting[1:]:
            waiting.append(Batch(isolate_all(batch.values), list(batch.timestamps)))
        self._waiting[0].append(batch)

    def _send_in_turns(self, batch: Batch, first: int, number: int) -> None:
        start = self._next
        self._next = (start + len(batch)) % number
        for turn in range(number):
            chosen = range((turn - start) % number, len(batch), number)
            if chosen:
                self._waiting[first + turn].append(batch.select(chosen))

    def _shuffle(self, batch: Batch) -> None:
        # The order looks random, but is the same when the step is computed again.
        start = self._next
        self._next = (start + len(batch)) % (1 << 32)
        self._distribute(batch, [((start + i) * 2654435761 % (1 << 32) >> 8) % self._tasks for i in range(len(batch))])

    def _rescale(self, batch: Batch) -> None:
        if self._upstreams >= self._tasks:
            self._waiting[self._upstream * self._tasks // self._upstreams].append(batch)
            return
        first = self._upstream * self._tasks // self._upstreams
        after = (self._upstream + 1) * self._tasks // self._upstreams
        self._send_in_turns(batch, first, after - first)

    def _distribute(self, batch: Batch, targets: list[int]) -> None:
        chosen: list[list[int]] = [[] for _ in range(self._tasks)]
        for position, target in enumerate(targets):
            chosen[target].append(position)
        for target, positions in enumerate(chosen):
            if len(positions) == len(targets) and positions:
                self._waiting[target].append(batch)
            elif positions:
                self._waiting[target].append(batch.select(positions))
