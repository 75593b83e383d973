"""Transactions: a number of inputs that views process together in one step at the commit."""

from __future__ import annotations

from airflow_pipelines.contract.enums import TransactionStatus
from airflow_pipelines.sdk.pipelines.base import STATUS_POLL_S
from airflow_pipelines.sdk.pipelines.inputs import PipelineInputs
from airflow_pipelines.sdk.pipelines.waiting import wait_until


class PipelineTransactions(PipelineInputs):
    """The methods that start and commit transactions."""

    def start_transaction(self) -> int:
        """Start a transaction: input from now on is collected, and is not visible in views, queries and listeners.

        Rows that were accepted before belong to the earlier steps. A checkpoint, or a graceful stop, waits for the commit. A kill,
        or a forced stop, rolls the whole transaction back: declared connectors read its input again, and pushed rows have to be
        pushed again.

        :returns: the transaction's number
        :raises PipelineAPIError: when one is in progress (``TransactionInProgress``), or the pipeline is not running
        """
        return int(self.client.post(self._path("start_transaction"))["transaction_id"])

    def commit_transaction(self, transaction_id: int | None = None, wait: bool = True, timeout_s: float | None = None) -> None:
        """Commit the transaction: one step processes everything that it has collected.

        :param transaction_id: the transaction that is expected to be in progress; None for any
        :param wait: True to wait until the step is done
        :param timeout_s: maximum number of seconds to wait
        :raises RuntimeError: when none is in progress
        :raises ValueError: when another transaction than ``transaction_id`` is in progress
        :raises PipelineTimeoutError: when it does not commit in time
        :raises PipelineAPIError: when the pipeline refuses or is not running
        :raises PipelineFailedError: when the pipeline stops during the commit, because a view could not be evaluated
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

        def check_committed() -> bool | None:
            nonlocal last
            last = self._raise_if_down(f"the commit of transaction {current}")
            return True if self.transaction_id() != current else None

        what = f"transaction {current} of pipeline {self.name!r} to commit"
        wait_until(check_committed, what=what, seen=lambda: last, timeout_s=timeout_s, poll_s=STATUS_POLL_S)

    def transaction_status(self) -> TransactionStatus:
        """Return the status of the pipeline's current transaction.

        :returns: the status
        :raises PipelineAPIError: when the pipeline has no host
        """
        return self._metrics().transaction_status or TransactionStatus.NoTransaction

    def transaction_id(self) -> int | None:
        """Return the number of the current transaction.

        :returns: the number; None if there is none
        :raises PipelineAPIError: when the pipeline has no host
        """
        return self._metrics().transaction_id or None
