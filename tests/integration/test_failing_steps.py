"""A step that fails: the error names the view, the row and the cause, and nothing is lost."""

from __future__ import annotations

from decimal import Decimal

import pytest

from airflow_pipelines import (
    BootstrapPolicy,
    Pipeline,
    PipelineAPIError,
    PipelineBuilder,
    PipelineClient,
    PipelineFailedError,
    PipelineStatus,
)
from tests.integration.bad_input import INTERNALS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

FAILING = """create table t (id bigint not null primary key, v bigint, s varchar) with ('materialized' = 'true');
create materialized view shares as select id, 100 / v as share from t;
create materialized view larger as select id, v + 9223372036854775800 as sum from t;
create materialized view numbers as select id, cast(s as int) as n from t;
"""
REPAIRED = """create table t (id bigint not null primary key, v bigint, s varchar) with ('materialized' = 'true');
create materialized view shares as select id, try_divide(100, v) as share from t;
create materialized view larger as select id, try_add(v, 9223372036854775800) as sum from t;
create materialized view numbers as select id, try_cast(s as int) as n from t;
"""


@pytest.fixture
def pipeline(embedded_client: PipelineClient, pipeline_name: str) -> Pipeline:
    """A pipeline with a row in its last checkpoint and another that came after it."""
    pipeline = PipelineBuilder(embedded_client, pipeline_name, FAILING).create(timeout_s=60)
    pipeline.start(timeout_s=60)
    pipeline.input_json("t", {"id": 1, "v": 4, "s": "1"})
    pipeline.checkpoint(wait=True, timeout_s=60)
    pipeline.input_json("t", {"id": 2, "v": 5, "s": "2"})
    return pipeline


@pytest.mark.core("division", slow_because="a pipeline fails and starts again")
@pytest.mark.parametrize(
    ("row", "view", "condition", "cause"),
    [
        pytest.param({"id": 3, "v": 0, "s": "3"}, "shares", "DIVIDE_BY_ZERO", "Division by zero", id="division"),
        pytest.param({"id": 3, "v": 8, "s": "3"}, "larger", "ARITHMETIC_OVERFLOW", "overflow", id="overflow"),
        pytest.param({"id": 3, "v": 1, "s": "three"}, "numbers", "CAST_INVALID_INPUT", "'three'", id="cast"),
    ],
)
def test_a_step_that_fails_takes_nothing_along(
    pipeline: Pipeline, row: dict[str, object], view: str, condition: str, cause: str
) -> None:
    listener = pipeline.listen("shares")
    with pytest.raises(PipelineFailedError) as caught:
        pipeline.input_json("t", row)
    error = pipeline.deployment_error()
    assert caught.value.deployment_error == error
    assert error is not None
    assert error["error_code"] == "RuntimeError.WorkerPanic"
    assert (error["details"]["view"], error["details"]["condition"]) == (view, condition)
    assert (error["details"]["relation"], error["details"]["row"]) == ("t", row)
    for text in (str(caught.value), error["message"]):
        assert view in text
        assert cause in text
        assert not INTERNALS.search(text)
    assert pipeline.status() is PipelineStatus.STOPPED
    # Whoever polls the listener for more hears of it, too.
    assert listener.join(10)
    with pytest.raises(PipelineFailedError, match=cause):
        listener.to_dict()
    # Not even what came after the checkpoint is lost.
    pipeline.start(timeout_s=60)
    assert [row["id"] for row in pipeline.query("select id from t order by id")] == [1, 2]


def test_a_repaired_program_takes_the_row(pipeline: Pipeline) -> None:
    with pytest.raises(PipelineFailedError):
        pipeline.input_json("t", {"id": 3, "v": 0, "s": "three"})
    with pytest.raises(PipelineAPIError, match=r"before its last error is dismissed.*dismiss_error") as refused:
        pipeline.start(dismiss_error=False)
    assert refused.value.error_code == "CannotStartWithUndismissedError"
    pipeline.modify(sql=REPAIRED)
    pipeline.start(bootstrap_policy=BootstrapPolicy.ALLOW, timeout_s=60)
    pipeline.input_json("t", {"id": 3, "v": 0, "s": "three"})
    assert list(pipeline.query("select * from numbers order by id")) == [{"id": 1, "n": 1}, {"id": 2, "n": 2}, {"id": 3, "n": None}]
    shares = {row["id"]: row["share"] for row in pipeline.query("select * from shares")}
    assert shares == {1: Decimal(25), 2: Decimal(20), 3: None}
