"""Records in every state, made the way the service makes them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from uuid6 import uuid7

from airflow_pipelines.contract.deployment import RuntimeTransition
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.service import edits
from airflow_pipelines.service.lifecycle import compilation, incarnation, requests
from airflow_pipelines.service.lifecycle.requests import StartRequest
from airflow_pipelines.service.records import PipelineRecord

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)
VERSION = "1.2.3"
DEPLOYMENT = UUID(int=7)
HOST = UUID(int=8)


def pending(name: str = "p", **fields: Any) -> PipelineRecord:
    """A pipeline that was just created."""
    body = {"name": name, "program_code": "create table t(id int);", **fields}
    return edits.new_record(edits.parse_full(body, VERSION), uuid7(), VERSION, NOW)


def compiling() -> PipelineRecord:
    return compilation.claim_compilation(pending(), NOW)


def stopped() -> PipelineRecord:
    """Compiled, never started."""
    record = compilation.sql_compiled(compiling(), {"schema": {}}, [], NOW)
    return compilation.complete_compilation(compilation.compiling_second_stage(record, NOW), NOW)


def broken() -> PipelineRecord:
    return compilation.sql_failed(compiling(), [{"message": "no"}], NOW)


def early_start() -> PipelineRecord:
    return requests.start(compiling(), StartRequest(), NOW)


def starting() -> PipelineRecord:
    return requests.start(stopped(), StartRequest(), NOW)


def provisioning() -> PipelineRecord:
    return incarnation.provision(incarnation.use_storage(starting()), DEPLOYMENT, HOST, {}, NOW)


def transition(status: RuntimeStatus, desired: RuntimeStatus = RuntimeStatus.RUNNING, **fields: Any) -> RuntimeTransition:
    return RuntimeTransition(deployment_id=DEPLOYMENT, status=status, desired=desired, **fields)


def at(status: RuntimeStatus, desired: RuntimeStatus = RuntimeStatus.RUNNING) -> PipelineRecord:
    """A pipeline whose incarnation is in ``status``."""
    return incarnation.observe(provisioning(), transition(status, desired, sequence=1), NOW)


def running() -> PipelineRecord:
    return at(RuntimeStatus.RUNNING)


def suspending() -> PipelineRecord:
    return requests.stop(running(), NOW, force=False)


def stopping() -> PipelineRecord:
    return incarnation.stopping(requests.stop(running(), NOW, force=True), NOW)


def stopped_with_storage() -> PipelineRecord:
    return incarnation.complete_stop(stopping(), NOW)


def failing() -> PipelineRecord:
    """Has just reported an error."""
    return incarnation.fail(running(), {"message": "x", "error_code": "X", "details": {}}, NOW)


def failed() -> PipelineRecord:
    """Stopped by an error."""
    error = {"message": "it broke", "error_code": "RuntimeError.WorkerPanic", "details": {}}
    return incarnation.complete_stop(incarnation.fail(running(), error, NOW), NOW)


def clearing() -> PipelineRecord:
    return requests.clear(stopped_with_storage())


def standby() -> PipelineRecord:
    return at(RuntimeStatus.STANDBY, RuntimeStatus.STANDBY)


def syncing() -> PipelineRecord:
    """Compiled, with a storage that could be started in standby."""
    config = {"storage": {"backend": {"name": "file", "config": {"sync": {"bucket": "b"}}}}}
    return replace(stopped(), runtime_config=pending(runtime_config=config).runtime_config)
