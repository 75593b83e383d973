"""Operators for loads that become visible as a whole or not at all: they start, commit and undo transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.contract.enums import TransactionStatus
from airflow_pipelines.hooks.conditions import CheckpointTakenCondition, TransactionEndedCondition, is_transient
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.base import WaitingPipelineOperator
from airflow_pipelines.operators.restart import STOPPING, RestartPipelineOperator
from airflow_pipelines.operators.task_memory import TaskMemory
from airflow_pipelines.sdk.errors import PipelineAPIError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_pipelines.hooks.pipeline import PipelineHook

_STARTED: Final = "transaction"


@dataclass(frozen=True, slots=True)
class _Transaction:
    """The identity of a transaction: its number counts within one run of the pipeline, and restarts after a run is lost."""

    number: int
    incarnation: str


@dataclass(frozen=True, slots=True)
class _Current:
    """The transaction state of a pipeline.

    :param transaction: the transaction in progress; its number is 0 if there is none
    :param committing: True if its commit was requested
    :param records: the number of records that it has collected
    """

    transaction: _Transaction
    committing: bool
    records: int


class StartTransactionOperator(WaitingPipelineOperator):
    """The operator that starts a transaction.

    Input from now on is collected, and no view, query or listener shows any of it before the commit. A retry finds the transaction
    that an earlier try has started.

    There is one transaction at a time. If somebody else has started one, the task fails.

    XCom: ``{"pipeline", "transaction_id", "incarnation"}``, which CommitTransactionOperator takes as ``transaction``.

    :param checkpoint: True to take a checkpoint before, so that undoing the transaction loses no earlier input
    """

    def __init__(self, *, checkpoint: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.checkpoint = checkpoint

    def act(self, context: Context) -> Any:
        """Start the transaction, after a checkpoint if one is requested."""
        mine = TaskMemory(context).recall(_STARTED)
        current = current_transaction(self.hook, self.pipeline_name).transaction
        if mine is not None and current == _Transaction(**mine):
            self.log.info("Transaction %s of pipeline %s was started by an earlier try", current.number, self.pipeline_name)
            return self._xcom(current)
        if not self.checkpoint:
            return self._start(context)
        asked = self.hook.pipeline(self.pipeline_name).checkpoint_response()
        condition = CheckpointTakenCondition(int(asked["checkpoint_sequence_number"]), str(asked["incarnation_uuid"]))
        return self.wait_and_finish(context, condition)

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Start the transaction after the checkpoint."""
        return self._start(context)

    def _start(self, context: Context) -> dict[str, Any]:
        number = self.hook.pipeline(self.pipeline_name).start_transaction()
        started = _Transaction(number, current_transaction(self.hook, self.pipeline_name).transaction.incarnation)
        TaskMemory(context).remember(_STARTED, {"number": started.number, "incarnation": started.incarnation})
        self.log.info("Transaction %s of pipeline %s is open", number, self.pipeline_name)
        return self._xcom(started)

    def _xcom(self, transaction: _Transaction) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline_name,
            "transaction_id": transaction.number,
            "incarnation": transaction.incarnation,
        }


class CommitTransactionOperator(WaitingPipelineOperator):
    """The operator that commits a transaction and waits until the step that takes all of it is done.

    One that is committed already is left alone.

    If the pipeline was restarted since the transaction began, the transaction is undone or was committed before. That cannot be
    distinguished any more, so the task fails.

    XCom: ``{"pipeline", "transaction_id", "records"}``; ``records`` is the number of records that it had collected when the commit
    was requested, or None if it was committed already.

    :param transaction: the XCom of StartTransactionOperator
    """

    template_fields: Sequence[str] = (*WaitingPipelineOperator.template_fields, "transaction")
    template_fields_renderers = {"transaction": "json"}

    def __init__(self, *, transaction: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.transaction = transaction

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.transaction = checked_transaction("transaction", self.transaction)

    def act(self, context: Context) -> Any:
        """Commit the transaction and wait."""
        mine = _parse_transaction(self.transaction)
        current = current_transaction(self.hook, self.pipeline_name)
        if current.transaction.incarnation != mine.incarnation:
            raise AirflowFailException(
                f"Pipeline {self.pipeline_name!r} was restarted since transaction {mine.number} began. A kill, or a stop with "
                "force, undoes a transaction: look at what the views have, and load again"
            )
        if current.transaction != mine:
            self.log.info("Transaction %s of pipeline %s is committed already", mine.number, self.pipeline_name)
            return {"pipeline": self.pipeline_name, "transaction_id": mine.number, "records": None}
        if not current.committing:
            self.hook.pipeline(self.pipeline_name).commit_transaction(mine.number, wait=False)
        condition = TransactionEndedCondition(mine.number, mine.incarnation)
        return self.wait_and_finish(context, condition, records=current.records)

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Return the XCom."""
        number = _parse_transaction(self.transaction).number
        return {"pipeline": self.pipeline_name, "transaction_id": number, "records": carried["records"]}


class UndoTransactionOperator(RestartPipelineOperator):
    """The operator that undoes a transaction that is still open: it force-stops the pipeline and starts it again.

    A transaction that is committed, is being committed, or was lost in a restart is left alone.

    The pipeline resumes from before the transaction: from its last checkpoint and its journal, if it keeps one. Declared connectors
    read their input again. Rows that were pushed meanwhile, also by others, are lost, and so are their tokens.

    XCom: ``{"pipeline", "transaction_id", "undone"}``.

    :param transaction: the XCom of StartTransactionOperator
    """

    template_fields: Sequence[str] = (*RestartPipelineOperator.template_fields, "transaction")
    template_fields_renderers = {"transaction": "json"}

    def __init__(self, *, transaction: Any, **kwargs: Any) -> None:
        super().__init__(mode="force", **kwargs)
        self.transaction = transaction

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.transaction = checked_transaction("transaction", self.transaction)

    def act(self, context: Context) -> Any:
        """Undo the transaction, unless it has ended."""
        mine = _parse_transaction(self.transaction)
        current = self._open()
        if current is not None and current.transaction == mine:
            self.log.warning(
                "Undoing transaction %s of pipeline %s with the %s records that it has collected",
                mine.number,
                self.pipeline_name,
                current.records,
            )
            # An earlier run of this task stopped the pipeline for another transaction.
            TaskMemory(context).forget(STOPPING)
        elif TaskMemory(context).recall(STOPPING) is None:
            self.log.info("Transaction %s of pipeline %s is not open any more", mine.number, self.pipeline_name)
            return self._xcom(undone=False)
        return super().act(context)

    def finish(self, context: Context, outcome: dict[str, Any], **carried: Any) -> Any:
        """Start the pipeline after the stop, and return the XCom after the start."""
        super().finish(context, outcome, **carried)
        return self._xcom(undone=True)

    def _open(self) -> _Current | None:
        """Return the transaction state, or None if the pipeline does not run or the commit was requested."""
        try:
            current = current_transaction(self.hook, self.pipeline_name)
        except PipelineAPIError as error:
            if is_transient(error):
                raise
            self.log.info("Pipeline %s has no transaction, for it does not run: %s", self.pipeline_name, error)
            return None
        return None if current.committing else current

    def _xcom(self, *, undone: bool) -> dict[str, Any]:
        return {"pipeline": self.pipeline_name, "transaction_id": _parse_transaction(self.transaction).number, "undone": undone}


def checked_transaction(name: str, value: Any) -> Mapping[str, Any]:
    """Return the value as an XCom of StartTransactionOperator.

    :param name: the argument's name
    :param value: the rendered value
    :raises AirflowFailException: if it is empty, lost, or something else
    """
    transaction = arguments.mapping(name, value)
    arguments.whole_number(f"{name}['transaction_id']", transaction.get("transaction_id"), least=1)
    arguments.text(f"{name}['incarnation']", transaction.get("incarnation"))
    return transaction


def current_transaction(hook: PipelineHook, name: str) -> _Current:
    """Return the transaction state of a pipeline.

    :param hook: the hook
    :param name: the pipeline's name
    :raises PipelineAPIError: if the pipeline does not run
    """
    metrics = hook.stats(name)["global_metrics"]
    started = (metrics.get("transaction_initiators") or {}).get("initiated_by_api")
    return _Current(
        _Transaction(int(metrics.get("transaction_id") or 0), str(metrics["incarnation_uuid"])),
        committing=metrics["transaction_status"] == TransactionStatus.CommitInProgress.name or started == "Committed",
        records=int(metrics.get("transaction_records") or 0),
    )


def _parse_transaction(transaction: Mapping[str, Any]) -> _Transaction:
    return _Transaction(int(transaction["transaction_id"]), str(transaction["incarnation"]))
