"""Transactions, and the difference of programs, through the unmodified client of PyPI's package ``feldera``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests
from feldera import Pipeline
from feldera.enums import BootstrapPolicy, PipelineStatus, TransactionStatus
from feldera.rest.errors import FelderaAPIError

from tests.fixtures.sdk import eventually

pytestmark = pytest.mark.integration

SQL = """create table t (id bigint not null primary key, v int) with ('materialized' = 'true');
create materialized view total as select sum(v) as s, count(*) as n from t;
"""


def total(pipeline: Pipeline) -> list[dict[str, Any]]:
    return list(pipeline.query("select * from total"))


@pytest.mark.core
def test_transactions_from_start_to_commit(deploy: Callable[..., Pipeline]) -> None:
    pipeline = deploy(SQL)
    pipeline.input_json("t", {"id": 1, "v": 1})
    assert pipeline.transaction_status() == TransactionStatus.NoTransaction
    assert pipeline.transaction_id() is None
    with pytest.raises(RuntimeError):
        pipeline.commit_transaction()

    number = pipeline.start_transaction()
    assert number == 1
    assert pipeline.transaction_status() == TransactionStatus.TransactionInProgress
    assert pipeline.transaction_id() == number
    with pytest.raises(FelderaAPIError) as refused:
        pipeline.start_transaction()
    assert (refused.value.status_code, refused.value.error_code) == (409, "TransactionInProgress")
    with pytest.raises(ValueError, match="2"):
        pipeline.commit_transaction(transaction_id=2)
    pipeline.input_json("t", [{"id": 2, "v": 10}, {"id": 3, "v": 100}], wait=False)
    listener = pipeline.listen("total")
    assert total(pipeline) == [{"s": 1, "n": 1}]
    metrics = pipeline.stats().global_metrics
    assert (metrics.transaction_id, metrics.transaction_initiators["initiated_by_api"]) == (1, "Started")
    pipeline.commit_transaction(transaction_id=number, timeout_s=60)
    assert pipeline.transaction_status() == TransactionStatus.NoTransaction
    assert total(pipeline) == [{"s": 111, "n": 3}]

    # A listener that came in the middle gets what comes next.
    pipeline.input_json("t", {"id": 4, "v": 1000})
    eventually(lambda: bool(listener.to_dict(clear_buffer=False)))
    assert listener.to_dict() == [{"s": 111, "n": 3, "insert_delete": -1}, {"s": 1111, "n": 4, "insert_delete": 1}]
    assert pipeline.start_transaction() == 2
    pipeline.commit_transaction(wait=False)
    eventually(lambda: pipeline.transaction_id() is None)
    pipeline.stop(force=False, timeout_s=60)
    pipeline.start(timeout_s=60)
    assert pipeline.start_transaction() == 3, "the numbers go on"
    pipeline.stop(force=True, timeout_s=60)


def fields(url: str, name: str, *keys: str) -> list[Any]:
    """Fields of a pipeline's descriptor."""
    descriptor = requests.get(f"{url}/v0/pipelines/{name}", timeout=30).json()
    return [descriptor[key] for key in keys]


def test_a_difference_is_what_approval_shows(deploy: Callable[..., Pipeline], served_url: str) -> None:
    pipeline = deploy(SQL + "create materialized view old as select id from t where v > 1;")
    pipeline.input_json("t", {"id": 2, "v": 2})
    changed = SQL.replace("sum(v)", "max(v)") + "create materialized view new as select id from t where v > 1;"
    difference = pipeline.diff(program_code=changed)
    assert difference["program_diff"]["modified_views"] == ["total"]
    assert (difference["program_diff"]["added_views"], difference["program_diff"]["removed_views"]) == (["new"], ["old"])
    with pytest.raises(FelderaAPIError) as refused:
        pipeline.diff(program_code="create view v as select * from nowhere")
    assert (refused.value.status_code, refused.value.error_code) == (400, "InvalidNewProgramSql")
    pipeline.stop(force=False, timeout_s=60)
    pipeline.modify(sql=changed)
    pipeline.start(bootstrap_policy=BootstrapPolicy.AWAIT_APPROVAL, timeout_s=60)
    details = pipeline.deployment_runtime_status_details()
    assert details is not None
    assert details["approval_diff"] == difference
    shown = ("silent_bootstrap", "concurrent_bootstrap", "bootstrap_policy")
    assert fields(served_url, pipeline.name, *shown) == [False, False, "await_approval"]
    pipeline.approve(concurrent_bootstrap=True)
    assert fields(served_url, pipeline.name, *shown) == [False, True, "await_approval"]
    pipeline.wait_for_status(PipelineStatus.RUNNING, timeout=60)
    assert list(pipeline.query("select * from new")) == [{"id": 2}]
    assert list(pipeline.query("select s from total")) == [{"s": 2}]
    pipeline.start_compaction()
    pipeline.rebalance()
    pipeline.stop(force=True, timeout_s=60)
