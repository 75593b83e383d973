"""Transactions: many inputs that become one step. The participants of the current one, the rows it has collected, and its commit.

While a transaction is open, the rows of inputs are normalised to deltas of tables and kept aside. No view is evaluated, so that an
intermediate state can neither be seen nor fail. The commit evaluates one step over the sum of these deltas.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_pipelines.connectors.base import ChunkInTransaction, InputChunk
from airflow_pipelines.contract.enums import TransactionStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.engine.pending import Pending
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.host.inputs.intake import Intake
from airflow_pipelines.host.inputs.step_input import Consumption, StepInput


class Phase(StrEnum):
    """The phase of one participant, in wire form."""

    STARTED = "Started"
    COMMITTED = "Committed"


@dataclass(slots=True, eq=False)
class Transaction:
    """An open transaction.

    :param number: its number
    :param first_push: the number of the first push that belongs to it; earlier pushes belong to steps before the transaction
    :param by_api: the phase of the request that started it, or None if connectors did
    :param by_connectors: the connectors that take part, with their phases
    :param last_push: the number of the first push that belongs to later steps, or None until a request commits the transaction
    :param drained: True if it has everything that connectors had read when a request committed it
    :param pending: the collected deltas
    :param consumption: the consumption of each input
    :param clock: the time to which a request has moved the clock meanwhile
    """

    number: int
    first_push: int
    by_api: Phase | None = None
    by_connectors: dict[InputEndpoint, Phase] = field(default_factory=dict)
    last_push: int | None = None
    drained: bool = False
    pending: Pending = field(default_factory=Pending)
    consumption: Consumption = field(default_factory=Consumption)
    clock: int | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def unfinished(self) -> frozenset[InputEndpoint]:
        """The connectors that have not done their part yet. A connector whose source has failed never will, and is left out."""
        started = (endpoint for endpoint, phase in self.by_connectors.items() if phase is Phase.STARTED)
        return frozenset(endpoint for endpoint in started if endpoint.fatal_error is None)

    @property
    def has_all(self) -> bool:
        """True if no participant has anything to add."""
        return self.by_api is not Phase.STARTED and not self.unfinished

    def takes_from(self, endpoint: InputEndpoint) -> bool:
        """Return True if the rows of a connector belong to the transaction, and not to a later step."""
        if self.by_api is Phase.STARTED:
            return True
        if self.by_api is Phase.COMMITTED and self.drained:
            return endpoint in self.unfinished
        done = self.by_connectors.get(endpoint) is Phase.COMMITTED
        return not done and not (self.by_api is None and self.has_all)

    @property
    def status(self) -> TransactionStatus:
        """The status of the transaction."""
        return TransactionStatus.CommitInProgress if self.has_all else TransactionStatus.TransactionInProgress

    def note(self, chunks: Mapping[InputEndpoint, list[InputChunk]]) -> None:
        """Note the connectors that take part, and those of them that have done their part."""
        for endpoint, parts in chunks.items():
            last = parts[-1]
            if last.transaction is not None or endpoint in self.by_connectors:
                goes_on = last.transaction is ChunkInTransaction.MORE and not last.end_of_input
                self.by_connectors[endpoint] = Phase.STARTED if goes_on else Phase.COMMITTED


class IncarnationTransactions:
    """The transactions of one incarnation, one at a time.

    Requests start and commit them in threads of their own; everything else is done by the pipeline's thread.
    """

    def __init__(self, condition: threading.Condition, intake: Intake, last: Callable[[], int]) -> None:
        """Start without an open transaction.

        :param condition: the runner's condition, notified of every change
        :param intake: the intake that numbers the pushes of requests
        :param last: returns the number of the last committed transaction
        """
        self._condition = condition
        self._intake = intake
        self._last = last
        self._current: Transaction | None = None
        self._afterwards: list[Callable[[], None]] = []

    @property
    def current(self) -> Transaction | None:
        """The open transaction, or None."""
        return self._current

    # Called by requests.

    def start(self) -> int:
        """Open a transaction, or join one that connectors have opened.

        :returns: its number
        :raises Problem: if a request has started one already, or one is being committed
        """
        with self._condition:
            transaction = self._current
            if transaction is not None and (transaction.by_api is not None or transaction.has_all):
                raise Problem(
                    ErrorCode.TRANSACTION_IN_PROGRESS,
                    f"Transaction {transaction.number} is in progress, and there is one at a time: commit it, or wait until it has "
                    "committed",
                    {"transaction_id": transaction.number},
                )
            transaction = transaction or self._open()
            transaction.by_api = Phase.STARTED
            self._condition.notify_all()
            return transaction.number

    def commit(self) -> None:
        """Commit the transaction that a request has started, once the participating connectors have done their part.

        :raises Problem: if no request has started one
        """
        with self._condition:
            transaction = self._current
            if transaction is None or transaction.by_api is not Phase.STARTED:
                raise Problem(
                    ErrorCode.NO_TRANSACTION_IN_PROGRESS,
                    "No transaction that a request has started is in progress, so that there is none to commit: start one first",
                )
            transaction.last_push = self._intake.mark()
            transaction.by_api = Phase.COMMITTED
            self._condition.notify_all()

    def after_commit(self, task: Callable[[], None]) -> bool:
        """Schedule a task for the time when the current transaction has committed.

        :param task: the task, which runs between two steps
        :returns: False if there is no transaction; the task is not scheduled then
        """
        with self._condition:
            if self._current is not None:
                self._afterwards.append(task)
            return self._current is not None

    # Called by the pipeline's thread.

    def opened_by(self, taken: StepInput) -> Transaction | None:
        """Return the transaction that a connector begins with the taken input, or None if no connector begins one."""
        if all(chunk.transaction is None for chunks in taken.chunks.values() for chunk in chunks):
            return None
        with self._condition:
            transaction = self._current or self._open()
            transaction.note(taken.chunks)
            return transaction

    def note(self, transaction: Transaction, taken: StepInput) -> None:
        """Note the connectors that take part in a transaction with the input that was taken for it."""
        with self._condition:
            transaction.note(taken.chunks)

    def close(self) -> None:
        """End the current transaction, which has committed, and run the scheduled tasks."""
        with self._condition:
            self._current = None
            tasks, self._afterwards = self._afterwards, []
            self._condition.notify_all()
        for task in tasks:
            task()

    def to_wire(self) -> dict[str, Any]:
        """Return the fields of the wire's ``global_metrics`` about transactions, without ``commit_progress``."""
        with self._condition:
            transaction = self._current
            if transaction is None:
                return {
                    "transaction_status": TransactionStatus.NoTransaction.value,
                    "transaction_id": 0,
                    "transaction_msecs": None,
                    "transaction_records": None,
                    "transaction_initiators": {"transaction_id": None, "initiated_by_api": None, "initiated_by_connectors": {}},
                }
            return {
                "transaction_status": transaction.status.value,
                "transaction_id": transaction.number,
                "transaction_msecs": int((time.monotonic() - transaction.started) * 1000),
                "transaction_records": transaction.consumption.records,
                "transaction_initiators": {
                    "transaction_id": transaction.number,
                    "initiated_by_api": transaction.by_api,
                    "initiated_by_connectors": {
                        endpoint.name: {"phase": phase, "label": None} for endpoint, phase in transaction.by_connectors.items()
                    },
                },
            }

    def _open(self) -> Transaction:
        transaction = self._current = Transaction(self._last() + 1, self._intake.mark())
        return transaction
