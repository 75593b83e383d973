"""Transactions: many inputs that views follow in one step, and not before it."""

from __future__ import annotations

from airflow_pipelines.contract.enums import TransactionStatus
from airflow_pipelines.sdk.pipelines.base import STATUS_POLL_S
from airflow_pipelines.sdk.pipelines.inputs import PipelineInputs
from airflow_pipelines.sdk.pipelines.waiting import wait_until


class PipelineTransactions(PipelineInputs):
    """Starting and committing transactions."""

    def start_transaction(self) -> int:
        """Start a transaction: what inputs bring from now on is collected, and views, queries and listeners show nothing of it.

        Rows that were accepted before belong to the steps before. A checkpoint, or a graceful stop, waits for the commit. A kill,
        or a stop with force, undoes the whole transaction: declared connectors read again what it had, and rows that were pushed
        have to be pushed again.

        :returns: the transaction's number
        :raises PipelineAPIError: when one is in progress (``TransactionInProgress``), or the pipeline does not run
        """
        return int(self.client.post(self._path("start_transaction"))["transaction_id"])

    def commit_transaction(self, transaction_id: int | None = None, wait: bool = True, timeout_s: float | None = None) -> None:
        """Commit the transaction: one step takes all that it has collected.

        :param transaction_id: the transaction that is expected to be in progress; None for whichever is
        :param wait: whether to wait until the step is done
        :param timeout_s: seconds to wait at most
        :raises RuntimeError: when none is in progress
        :raises ValueError: when another one than ``transaction_id`` is in progress
        :raises PipelineTimeoutError: when it does not commit in time
        :raises PipelineAPIError: when the pipeline refuses or does not run
        :raises PipelineFailedError: when the pipeline stops while the commit is waited for, because a view could not be evaluated
        """
        current = self.transaction_id()
        if current is None:
            raise RuntimeError(f"pipeline {self.name!r} has no transaction to commit: start one first")
        if transaction_id is not None and transaction_id != current:
            raise ValueError(f"transaction {transaction_id} is not in progress in pipeline {self.name!r}, but {current}")
        self.client.post(self._path("commit_transaction"))
        if not wait:
            return
        last = "nothing"

        def committed() -> bool | None:
            nonlocal last
            last = self._raise_if_down(f"the commit of transaction {current}")
            return True if self.transaction_id() != current else None

        what = f"transaction {current} of pipeline {self.name!r} to commit"
        wait_until(committed, what=what, seen=lambda: last, timeout_s=timeout_s, poll_s=STATUS_POLL_S)

    def transaction_status(self) -> TransactionStatus:
        """Where the pipeline stands with transactions.

        :returns: the status
        :raises PipelineAPIError: when the pipeline has no host
        """
        return self._metrics().transaction_status or TransactionStatus.NoTransaction

    def transaction_id(self) -> int | None:
        """The current transaction.

        :returns: its number; None when there is none
        :raises PipelineAPIError: when the pipeline has no host
        """
        return self._metrics().transaction_id or None
