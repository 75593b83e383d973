"""The queues from requests to the runner's thread: rows for the next step, and tasks to run between two steps."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.host.inputs.connector_input import STEP_RECORDS
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.rows.changes import TableChanges


@dataclass(eq=False, slots=True)
class Push:
    """Rows that a request pushes.

    :param endpoint: the endpoint that counts them, or None for rows of ad-hoc statements
    :param key: the key that identifies the rows if they are sent again, or None for rows that are added each time
    :param repeats: True if the rows are in the pipeline already, or in progress
    :param accepted: done once they count as received
    :param committed: done once a step has them, with the step's number
    """

    endpoint: InputEndpoint | None
    changes: list[TableChanges]
    records: int
    size_bytes: int
    key: str | None = None
    repeats: bool = False
    accepted: Future[None] = field(default_factory=Future)
    number: int = 0
    committed: Future[int] = field(default_factory=Future)

    def complete(self, step: int) -> None:
        """Tell the waiting request that ``step`` has the rows."""
        # The waiting client may have gone, which cancels the future.
        with suppress(InvalidStateError):
            self.committed.set_result(step)

    def fail(self, problem: Problem) -> None:
        """Tell the waiting request that the rows were not taken."""
        for future in (self.accepted, self.committed):
            with suppress(InvalidStateError):
                future.set_exception(problem)


class Intake:
    """The queues between requests, which may come from any thread, and the runner's thread.

    :param condition: the runner's condition, notified of everything new
    :param received: called as ``received(records, bytes)`` to count accepted rows
    """

    def __init__(self, condition: threading.Condition, received: Callable[[int, int], None]) -> None:
        self._condition = condition
        self._received = received
        self._accepted: deque[Push] = deque()
        self._blocked: deque[Push] = deque()
        self._tasks: deque[Callable[[], None]] = deque()
        self._taken: list[Push] = []
        self._next = 0
        self._open = False
        self._closed: Problem | None = None

    def push(self, push: Push, *, force: bool) -> None:
        """Queue rows. While the pipeline is paused they are not accepted, unless ``force``.

        :raises Problem: if the pipeline has ended
        """
        with self._condition:
            if self._closed is not None:
                raise self._closed
            if force or self._open:
                self._accept(push)
            else:
                self._blocked.append(push)
            self._condition.notify_all()

    def force(self, key: str) -> None:
        """Accept rows that wait because the pipeline is paused, since they were sent again with ``force``.

        :param key: their key; nothing happens if no such rows wait
        """
        with self._condition:
            for push in [push for push in self._blocked if push.key == key]:
                self._blocked.remove(push)
                self._accept(push)
            self._condition.notify_all()

    def submit(self, task: Callable[[], None]) -> Future[None]:
        """Run ``task`` between two steps; its failure goes to the waiting request.

        :raises Problem: if the pipeline has ended
        """
        done: Future[None] = Future()

        def run() -> None:
            try:
                task()
            except Exception as error:  # noqa: BLE001  belongs to the request
                done.set_exception(error)
            else:
                done.set_result(None)

        with self._condition:
            if self._closed is not None:
                raise self._closed
            self._tasks.append(run)
            self._condition.notify_all()
        return done

    def set_open(self, accepting: bool) -> None:
        """Accept rows that are not forced, or not: follows the pipeline's Running and Paused."""
        with self._condition:
            self._open = accepting
            while accepting and self._blocked:
                self._accept(self._blocked.popleft())

    def take_tasks(self) -> list[Callable[[], None]]:
        """Remove and return the tasks to run now."""
        with self._condition:
            tasks = list(self._tasks)
            self._tasks.clear()
        return tasks

    @property
    def has_tasks(self) -> bool:
        """True if there are tasks."""
        return bool(self._tasks)

    def mark(self) -> int:
        """Return the number that the next accepted push gets."""
        return self._next

    def has_before(self, mark: int | None) -> bool:
        """Return True if accepted pushes from before a mark wait; None stands for all."""
        with self._condition:
            return bool(self._accepted) and (mark is None or self._accepted[0].number < mark)

    def take(self, before: int | None = None) -> list[Push]:
        """Remove and return the rows for one step: requests that wait at the same time share it.

        :param before: a mark; pushes from there on stay in the queue
        """
        records = 0
        with self._condition:
            self._taken = []
            while self._accepted and records <= STEP_RECORDS and (before is None or self._accepted[0].number < before):
                self._taken.append(self._accepted.popleft())
                records += self._taken[-1].records
            return self._taken

    def close(self, problem: Problem) -> None:
        """Accept nothing more. Waiting requests get ``problem``, as do those with rows in a step that failed."""
        with self._condition:
            self._closed = problem
            waiting = [*self._taken, *self._accepted, *self._blocked]
            tasks = list(self._tasks)
            self._accepted.clear()
            self._blocked.clear()
            self._tasks.clear()
        for push in waiting:
            push.fail(problem)
        for task in tasks:
            # A task checks by itself if the pipeline has ended.
            task()

    def _accept(self, push: Push) -> None:
        if not push.accepted.set_running_or_notify_cancel():
            # The client has gone.
            return
        self._received(push.records, push.size_bytes)
        if push.endpoint is not None:
            push.endpoint.count_received(push.records, push.size_bytes)
        push.number = self._next
        self._next += 1
        self._accepted.append(push)
        push.accepted.set_result(None)
