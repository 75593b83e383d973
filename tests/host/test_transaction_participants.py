"""Who takes part in a transaction, and when it commits: without an engine."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import pytest

from airflow_pipelines.connectors.base import ChunkInTransaction, InputChunk
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.host.inputs.inputs import InputEndpoint
from airflow_pipelines.host.inputs.intake import Intake, Push
from airflow_pipelines.host.inputs.step_input import StepInput
from airflow_pipelines.host.steps.transactions import IncarnationTransactions

FIRST, SECOND, PLAIN = InputEndpoint("t.first", "t"), InputEndpoint("t.second", "t"), InputEndpoint("t.plain", "t")
MORE, LAST = ChunkInTransaction.MORE, ChunkInTransaction.LAST


@pytest.fixture
def intake() -> Intake:
    return Intake(threading.Condition(), lambda records, size: None)


@pytest.fixture
def transactions(intake: Intake) -> IncarnationTransactions:
    return IncarnationTransactions(threading.Condition(), intake, lambda: 4)


def taken(parts: Mapping[InputEndpoint, ChunkInTransaction | None]) -> StepInput:
    return StepInput([], {endpoint: [InputChunk(None, 1, 1, {}, transaction=part)] for endpoint, part in parts.items()})


def test_connectors_open_a_transaction_that_commits_with_the_last_of_them(transactions: IncarnationTransactions) -> None:
    assert transactions.opened_by(taken({PLAIN: None})) is None
    transaction = transactions.opened_by(taken({FIRST: MORE, PLAIN: None}))
    assert transaction is not None
    assert transaction.number == 5
    assert transactions.to_wire()["transaction_status"] == "TransactionInProgress"
    transactions.note(transaction, taken({SECOND: MORE, FIRST: LAST}))
    assert not transaction.takes_from(FIRST), "what it has next belongs to a later transaction"
    assert transaction.takes_from(SECOND)
    assert transaction.takes_from(PLAIN)
    assert not transaction.has_all
    assert transactions.to_wire()["transaction_initiators"]["initiated_by_connectors"] == {
        "t.first": {"phase": "Committed", "label": None},
        "t.second": {"phase": "Started", "label": None},
    }
    transactions.note(transaction, taken({SECOND: LAST}))
    assert transaction.has_all
    assert not transaction.takes_from(PLAIN), "it would hold the commit up"
    with pytest.raises(Problem) as refused:
        transactions.start()
    assert refused.value.code is ErrorCode.TRANSACTION_IN_PROGRESS
    with pytest.raises(Problem) as refused:
        transactions.commit()
    assert refused.value.code is ErrorCode.NO_TRANSACTION_IN_PROGRESS
    transactions.close()
    assert transactions.to_wire()["transaction_id"] == 0


def test_a_request_joins_what_connectors_have_opened_and_holds_it_open(transactions: IncarnationTransactions) -> None:
    transaction = transactions.opened_by(taken({FIRST: MORE}))
    assert transaction is not None
    assert transactions.start() == 5
    transactions.note(transaction, taken({FIRST: LAST}))
    assert transaction.takes_from(FIRST), "as long as it is open, one transaction of a connector after the other goes into it"
    transactions.note(transaction, taken({FIRST: MORE}))
    transactions.commit()
    assert transaction.takes_from(PLAIN), "what it has read already"
    transaction.drained = True
    assert not transaction.takes_from(PLAIN)
    assert transaction.takes_from(FIRST)
    assert not transaction.has_all
    assert transaction.unfinished == {FIRST}
    with pytest.raises(Problem):
        transactions.commit()
    FIRST.health.fatal = "the source is gone"
    try:
        assert transaction.has_all, "it would wait for ever"
    finally:
        FIRST.health.fatal = None


def test_rows_are_in_a_transaction_when_they_were_accepted_between_its_start_and_its_commit(
    transactions: IncarnationTransactions, intake: Intake
) -> None:
    def push() -> Push:
        made = Push(None, [], 1, 1)
        intake.push(made, force=True)
        return made

    before = push()
    transactions.start()
    within = [push(), push()]
    transactions.commit()
    after = push()
    transaction = transactions.current
    assert transaction is not None
    assert intake.has_before(transaction.first_push)
    assert intake.take(transaction.first_push) == [before]
    assert not intake.has_before(transaction.first_push)
    assert intake.take(transaction.last_push) == within
    assert intake.take(transaction.last_push) == []
    assert intake.take() == [after]


def test_what_waits_for_the_commit_is_done_once(transactions: IncarnationTransactions) -> None:
    done: list[str] = []
    assert not transactions.after_commit(lambda: done.append("at once"))
    transactions.start()
    assert transactions.after_commit(lambda: done.append("afterwards"))
    transactions.close()
    transactions.close()
    assert done == ["afterwards"]
