from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.operators.check import CheckPipelineOperator, OffendingRowsError

COMMON: dict[str, Any] = {"task_id": "x", "pipeline_name": "p"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The queries that were asked, and the rows that they are answered with."""
    found = SimpleNamespace(queries=[], rows=[])

    def query(_hook: PipelineHook, _name: str, sql: str, limit: int) -> list[Any]:
        found.queries.append(sql)
        return list(found.rows[:limit])

    monkeypatch.setattr(PipelineHook, "query", query)
    return found


def test_a_condition_that_holds_is_reported(asked: Any) -> None:
    result = CheckPipelineOperator(**COMMON, view="revenue", condition="total >= 0").execute({})
    assert result == {"pipeline": "p", "checked": "revenue: total >= 0", "offending_rows": []}
    # NULL is no yes.
    assert asked.queries == ["select * from revenue where (total >= 0) is not true"]


def test_offending_rows_fail_it_and_are_shown(asked: Any) -> None:
    asked.rows = [{"customer": f"c{n}", "total": Decimal("-1.50")} for n in range(3)]
    pushed: dict[str, Any] = {}
    context: Any = {"ti": SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}))}
    with pytest.raises(OffendingRowsError) as raised:
        CheckPipelineOperator(**COMMON, view="revenue", condition="total >= 0", limit=2).execute(context)
    text = str(raised.value)
    assert "'p' does not hold: revenue: total >= 0\nIt has more than 2 rows, such as:" in text
    assert '{"customer": "c0", "total": "-1.50"}\n{"customer": "c1", "total": "-1.50"}' in text
    assert pushed["offending_rows"] == [{"customer": "c0", "total": "-1.50"}, {"customer": "c1", "total": "-1.50"}]
    asked.rows = asked.rows[:1]
    # A retry may find it right, so it is none of the errors that fail a task for good.
    with pytest.raises(OffendingRowsError, match="It has 1 row:") as once:
        CheckPipelineOperator(**COMMON, query="select 1", limit="2").execute({})
    assert not isinstance(once.value, AirflowFailException)
    assert asked.queries[-1] == "select 1"


@pytest.mark.parametrize(
    "arguments", [{}, {"view": "v"}, {"condition": "a > 0"}, {"view": "v", "condition": "a > 0", "query": "select 1"}]
)
def test_it_is_one_or_the_other(arguments: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="give view and condition, or query"):
        CheckPipelineOperator(**COMMON, **arguments)


def test_what_is_lost_is_no_check_that_holds(asked: Any) -> None:
    for name, arguments in {"condition": {"view": "v", "condition": ""}, "query": {"query": "None"}}.items():
        with pytest.raises(AirflowFailException, match=f"{name} is empty"):
            CheckPipelineOperator(**COMMON, **arguments).execute({})
    assert asked.queries == []


def test_it_asks_in_the_triggerer(asked: Any) -> None:
    operator = CheckPipelineOperator(**COMMON, view="v", condition="a > 0", deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute({})
    trigger = deferred.value.trigger
    assert (trigger.query, trigger.limit) == ("select * from v where (a > 0) is not true", 10)
    event = {"outcome": "reached", "message": "", "result": {"rows": [{"a": 0}], "truncated": False}}
    with pytest.raises(OffendingRowsError, match=r'\{"a": 0\}'):
        operator.execute_complete({}, event)
    assert asked.queries == []
