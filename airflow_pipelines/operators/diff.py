"""Changes of a pipeline's program, in the form for XComs and for comparison."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

from airflow_pipelines.contract.change_text import changes_of
from airflow_pipelines.contract.descriptors import PendingChange


def change_xcom(change: PendingChange | None) -> dict[str, Any]:
    """Return the XCom of a change; each part is None if no change is pending."""
    if change is None:
        return {"diff": None, "programs": None, "views_evaluated_anew": None}
    return {"diff": change.diff, "programs": change.programs, "views_evaluated_anew": change.views_evaluated_anew}


def change_fingerprint(change: PendingChange, *more: Any) -> str:
    """Return a short text that identifies a change of certain programs.

    :param change: the change
    :param more: other JSON values that belong to it
    """
    content = [change_xcom(change), *more] if more else change_xcom(change)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def review_xcom(pipeline: str, conn_id: str, change: PendingChange, *, planned: bool, version: int | None = None) -> dict[str, Any]:
    """Return the XCom ``review`` of a request, from which a page can show it on the pipeline.

    :param pipeline: the pipeline
    :param conn_id: the connection's id
    :param change: the change to decide about
    :param planned: True if the pipeline continues without the change, so that it cannot show it itself
    :param version: the only version of the pipeline that the change can be applied to; None if the request is not bound to one
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
    """Return a change in the form in which a pipeline that awaits approval shows it."""
    return {
        "approval_diff": change.diff,
        "programs": change.programs,
        "views_evaluated_anew": change.views_evaluated_anew,
        "plan": None if change.plan is None else change.plan.to_wire(),
    }


def changes_something(change: PendingChange) -> bool:
    """Return True if a change is more than one of comments and layout.

    Such a change affects the stored, evaluated or delivered data, or is refused.
    """
    if any(changes_of(change.diff)) or change.diff.get("program_diff_error") or change.views_evaluated_anew:
        return True
    plan = change.plan
    return plan is None or any((plan.relations, plan.evaluated, plan.dropped, plan.operators, plan.refusals))
