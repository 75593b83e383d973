"""Changes of a pipeline's program, for XComs and for comparison."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

from airflow_pipelines.contract.change_text import changes_of
from airflow_pipelines.contract.descriptors import PendingChange


def change_xcom(change: PendingChange | None) -> dict[str, Any]:
    """What an XCom holds of a change; None for each part when nothing waits."""
    if change is None:
        return {"diff": None, "programs": None, "views_evaluated_anew": None}
    return {"diff": change.diff, "programs": change.programs, "views_evaluated_anew": change.views_evaluated_anew}


def change_fingerprint(change: PendingChange, *more: Any) -> str:
    """A short text that is the same for the same change of the same programs only.

    :param change: the change
    :param more: other JSON values that belong to it
    """
    found = [change_xcom(change), *more] if more else change_xcom(change)
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]


def review_xcom(pipeline: str, conn_id: str, change: PendingChange, *, planned: bool, version: int | None = None) -> dict[str, Any]:
    """What an XCom ``review`` tells about a request, so that a page can show it on the pipeline.

    :param pipeline: the pipeline
    :param conn_id: the connection's id
    :param change: what people are asked about
    :param planned: whether the pipeline goes on without it, so that it cannot show the change itself
    :param version: the only version of the pipeline that the change can be made to; None when the request is not bound to one
    """
    return {
        "pipeline": pipeline,
        "pipeline_conn_id": conn_id,
        "programs": change.programs,
        "change": change_wire(change) if planned else None,
        "version": version,
        "asked_at": int(time.time() * 1000),
    }


def change_wire(change: PendingChange) -> dict[str, Any]:
    """A change in the form in which a pipeline that awaits approval shows it."""
    return {
        "approval_diff": change.diff,
        "programs": change.programs,
        "views_evaluated_anew": change.views_evaluated_anew,
        "plan": None if change.plan is None else change.plan.to_wire(),
    }


def changes_something(change: PendingChange) -> bool:
    """Whether a change is more than one of comments and layout: whether it changes what is stored, evaluated or delivered, or is
    refused.
    """
    if any(changes_of(change.diff)) or change.diff.get("program_diff_error") or change.views_evaluated_anew:
        return True
    plan = change.plan
    return plan is None or any((plan.relations, plan.evaluated, plan.dropped, plan.operators, plan.refusals))
