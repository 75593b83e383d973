"""Transactions: many inputs as one step."""

from __future__ import annotations

from fastapi import APIRouter

from airflow_pipelines.host.api.routers.common import Runner

router = APIRouter(prefix="/deployments/{deployment_id}")


@router.post("/start_transaction")
def start_transaction(runner: Runner) -> dict[str, int]:
    """Start to collect the rows of inputs without showing any of them."""
    return {"transaction_id": runner.requests.start_transaction()}


@router.post("/commit_transaction")
def commit_transaction(runner: Runner) -> str:
    """Make one step of everything that was collected. Answer before that step."""
    runner.requests.commit_transaction()
    return "Transaction commit initiated"
