"""The change that waits for approval, for XComs and for comparison."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from airflow_pipelines.contract.change_text import changes_of
from airflow_pipelines.contract.descriptors import PendingChange


def change_xcom(change: PendingChange | None) -> dict[str, Any]:
    """What an XCom holds of a change; None for each part when nothing waits."""
    if change is None:
        return {"diff": None, "programs": None, "views_evaluated_anew": None}
    return {"diff": change.diff, "programs": change.programs, "views_evaluated_anew": change.views_evaluated_anew}


def change_fingerprint(change: PendingChange) -> str:
    """A short text that is the same for the same change of the same programs only."""
    return hashlib.sha256(json.dumps(change_xcom(change), sort_keys=True).encode()).hexdigest()[:16]


def changes_something(change: PendingChange) -> bool:
    """Whether a change is more than one of comments and layout: whether it changes what is stored, evaluated or delivered, or is
    refused.
    """
    if any(changes_of(change.diff)) or change.diff.get("program_diff_error") or change.views_evaluated_anew:
        return True
    plan = change.plan
    return plan is None or any((plan.relations, plan.evaluated, plan.dropped, plan.operators, plan.refusals))
