"""Operators for loads that are to be seen as a whole or not at all: they start, commit and undo transactions."""

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
    """What names a transaction: its number counts within one run of the pipeline, and starts anew where that is lost."""

    number: int
    incarnation: str


@dataclass(frozen=True, slots=True)
class _Current:
    """How a pipeline stands with transactions.

    :param transaction: the one in progress; its number is 0 when there is none
    :param committing: whether its commit was asked for
    :param records: how many records it has collected
    """

    transaction: _Transaction
    committing: bool
    records: int


class StartTransactionOperator(WaitingPipelineOperator):
    """Starts a transaction: what inputs bring from now on is collected, and no view, query or listener shows any of it before the
    commit. A retry finds the transaction that an earlier try has started.

    There is one transaction at a time. One that somebody else has started fails the task.

    XCom: ``{"pipeline", "transaction_id", "incarnation"}``, which CommitTransactionOperator takes as ``transaction``.

    :param checkpoint: take a checkpoint before, so that undoing the transaction loses nothing that came before it
    """

    def __init__(self, *, checkpoint: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.checkpoint = checkpoint

    def act(self, context: Context) -> Any:
        """Start it, after a checkpoint if there is to be one."""
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

    def finish(self, context: Context, found: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Start it after the checkpoint."""
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
    """Commits a transaction and waits until the step that takes all of it is done. One that is committed already is left alone.

    When the pipeline was restarted since the transaction began, the transaction is undone, or was committed before: this cannot be
    told any more, and the task fails.

    XCom: ``{"pipeline", "transaction_id", "records"}``; ``records`` is how many records it had collected when the commit was asked
    for, None when it was committed already.

    :param transaction: what StartTransactionOperator returned
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
        """Commit and wait."""
        mine = _named(self.transaction)
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

    def finish(self, context: Context, found: dict[str, Any], **carried: Any) -> dict[str, Any]:
        """Report."""
        number = _named(self.transaction).number
        return {"pipeline": self.pipeline_name, "transaction_id": number, "records": carried["records"]}


class UndoTransactionOperator(RestartPipelineOperator):
    """Undoes a transaction that is still open, by the one way that there is: it stops the pipeline by force and starts it again.
    One that is committed, is being committed, or is gone with a restart is left alone.

    The pipeline goes on from before the transaction: from its last checkpoint and its journal, if it keeps one. Declared connectors
    read again what they had brought. Rows that were pushed meanwhile, also by others, are gone, and so are their tokens.

    XCom: ``{"pipeline", "transaction_id", "undone"}``.

    :param transaction: what StartTransactionOperator returned
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
        """Undo it, unless it has ended."""
        mine = _named(self.transaction)
        current = self._open()
        if current is not None and current.transaction == mine:
            self.log.warning(
                "Undoing transaction %s of pipeline %s with the %s records that it has collected",
                mine.number,
                self.pipeline_name,
                current.records,
            )
            # What an earlier run of this task stopped was stopped for another transaction.
            TaskMemory(context).forget(STOPPING)
        elif TaskMemory(context).recall(STOPPING) is None:
            self.log.info("Transaction %s of pipeline %s is not open any more", mine.number, self.pipeline_name)
            return self._xcom(undone=False)
        return super().act(context)

    def finish(self, context: Context, found: dict[str, Any], **carried: Any) -> Any:
        """Start after the stop, and report after the start."""
        super().finish(context, found, **carried)
        return self._xcom(undone=True)

    def _open(self) -> _Current | None:
        """The transaction in progress of which nobody has asked for the commit."""
        try:
            current = current_transaction(self.hook, self.pipeline_name)
        except PipelineAPIError as error:
            if is_transient(error):
                raise
            self.log.info("Pipeline %s has no transaction, for it does not run: %s", self.pipeline_name, error)
            return None
        return None if current.committing else current

    def _xcom(self, *, undone: bool) -> dict[str, Any]:
        return {"pipeline": self.pipeline_name, "transaction_id": _named(self.transaction).number, "undone": undone}


def checked_transaction(name: str, value: Any) -> Mapping[str, Any]:
    """What StartTransactionOperator returned.

    :param name: the argument's name
    :param value: what it came to
    :raises AirflowFailException: it is empty, lost, or something else
    """
    found = arguments.mapping(name, value)
    arguments.whole_number(f"{name}['transaction_id']", found.get("transaction_id"), least=1)
    arguments.text(f"{name}['incarnation']", found.get("incarnation"))
    return found


def current_transaction(hook: PipelineHook, name: str) -> _Current:
    """How a pipeline stands with transactions.

    :param hook: the hook
    :param name: the pipeline's name
    :raises PipelineAPIError: the pipeline does not run
    """
    metrics = hook.stats(name)["global_metrics"]
    started = (metrics.get("transaction_initiators") or {}).get("initiated_by_api")
    return _Current(
        _Transaction(int(metrics.get("transaction_id") or 0), str(metrics["incarnation_uuid"])),
        committing=metrics["transaction_status"] == TransactionStatus.CommitInProgress.name or started == "Committed",
        records=int(metrics.get("transaction_records") or 0),
    )


def _named(transaction: Mapping[str, Any]) -> _Transaction:
    return _Transaction(int(transaction["transaction_id"]), str(transaction["incarnation"]))
