from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.hooks.conditions import PollOutcome, ViewCondition
from airflow_pipelines.sdk.errors import PipelineAPIError
from tests.hooks.conditions.polls import seen


def found(**row: Any) -> dict[str, Any]:
    return {"__row_found": 1} | row


def test_a_query_finds_a_row_or_none() -> None:
    condition = ViewCondition("select * from late")
    # No row is no body.
    nothing = condition.judge(seen(answer=None), None)
    assert (nothing.outcome, nothing.message) == (PollOutcome.PENDING, "RUNNING, the query finds no row")
    assert condition.judge(seen("Initializing", answer=None), None).message == "INITIALIZING"
    verdict = condition.judge(seen(answer=found(id=7, why=None)), None)
    assert verdict.outcome is PollOutcome.REACHED
    assert verdict.result == {"row": {"id": 7, "why": None}}


def test_its_first_column_is_compared() -> None:
    condition = ViewCondition("select count(*) as n from v", ">=", 3)
    assert condition.judge(seen(answer=found(n=2)), None).outcome is PollOutcome.PENDING
    assert condition.judge(seen(answer=found(n=3)), None).outcome is PollOutcome.REACHED
    assert condition.judge(seen(answer=found(n=None)), None).outcome is PollOutcome.PENDING, "NULL compares with nothing"
    unequal = ViewCondition("select max(x) as n from v", "!=", 3)
    assert unequal.judge(seen(answer=found(n=None)), None).outcome is PollOutcome.PENDING
    mixed = condition.judge(seen(answer=found(n="3")), None)
    assert mixed.outcome is PollOutcome.FAILED
    assert "'3' does not compare with 3" in mixed.message


def test_the_query_can_only_read() -> None:
    request = ViewCondition("select a from t -- all of them\n;").request()
    assert (
        request.params["sql"] == "select 1 as __row_found, awaited.* from (\nselect a from t -- all of them\n\n) as awaited limit 1"
    )


def test_a_query_that_fails_ends_the_wait() -> None:
    refused = PipelineAPIError(400, "AdHocQueryError", "1:15: there is no relation v")
    assert ViewCondition("select * from v").judge(seen(refusal=refused), None).outcome is PollOutcome.FAILED
    # One that fails while it runs.
    verdict = ViewCondition("select 1/a from v").judge(seen(answer={"error": "division by zero"}), None)
    assert verdict.outcome is PollOutcome.FAILED
    assert "division by zero" in verdict.message
    # A column of that name is a column.
    assert ViewCondition("select error from v").judge(seen(answer=found(error="x")), None).outcome is PollOutcome.REACHED


def test_what_means_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="query is empty"):
        ViewCondition(" ; ")
    with pytest.raises(ValueError, match="give both or neither"):
        ViewCondition("select 1", ">")
    with pytest.raises(ValueError, match="give both or neither"):
        ViewCondition("select 1", None, 3)
