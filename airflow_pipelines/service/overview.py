"""All pipelines at a glance: their statuses, newest checkpoints, and what the hosts of those that run say of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from airflow_pipelines.contract.registry import HostRecord
from airflow_pipelines.contract.statuses import ResourcesStatus
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.hosts import HostUnreachable
from airflow_pipelines.service.records import COMPILE_ERRORS, PipelineRecord, later

AT_ONCE: Final = 8
"""So many hosts are asked at the same time."""
PATIENCE_S: Final = 2.0
"""The pipelines of a host that does not answer in this time are shown without figures: who looks at them looks again soon."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _HostAnswer:
    """What a host says of its deployments, by their ids; or why it says nothing."""

    figures: Mapping[str, Any]
    problem: str | None = None


def overview(control_plane: ControlPlane) -> dict[str, Any]:
    """All pipelines, oldest first. Each host is asked once, and none is started.

    :param control_plane: the control plane
    """
    records = control_plane.pipelines()
    answers = _ask(control_plane, {record.host_id for record in records if _is_deployed(record)} - {None})
    return {"now": int(time.time() * 1000), "pipelines": [_row(record, answers) for record in records]}


def _is_deployed(record: PipelineRecord) -> bool:
    return record.deployment_resources_status is ResourcesStatus.PROVISIONED


def _ask(control_plane: ControlPlane, host_ids: Iterable[UUID | None]) -> dict[UUID, _HostAnswer]:
    wanted = set(host_ids)
    hosts = [host for host in control_plane.registry.live_hosts() if host.host_id in wanted]
    if not hosts:
        return {}
    with ThreadPoolExecutor(min(AT_ONCE, len(hosts)), "figures") as pool:
        answers = pool.map(lambda host: _asked(control_plane, host), hosts)
        return {host.host_id: answer for host, answer in zip(hosts, answers, strict=True)}


def _asked(control_plane: ControlPlane, host: HostRecord) -> _HostAnswer:
    try:
        response = control_plane.hosts.call(host, "GET", "/figures", timeout_s=PATIENCE_S)
    except HostUnreachable as error:
        logger.info("The host %s gives no figures: %s", host.host_id, error)
        return _HostAnswer({}, f"its host does not answer: {error}")
    if not response.is_success:
        # Also what a host of an earlier release says, which does not know the question.
        return _HostAnswer({}, f"its host answers {response.status_code}")
    return _HostAnswer(response.json())


def _row(record: PipelineRecord, answers: Mapping[UUID, _HostAnswer]) -> dict[str, Any]:
    answer = None if record.host_id is None or not _is_deployed(record) else answers.get(record.host_id)
    details = record.storage_status_details or {}
    return {
        "id": str(record.id),
        "name": record.name,
        "description": record.description,
        "tags": list(record.tags),
        "version": record.version,
        "program_version": record.program_version,
        "status": record.deployment_status,
        "status_since": _milliseconds(later(record.deployment_resources_status_since, record.deployment_runtime_status_since)),
        "desired_status": record.deployment_desired_status,
        "program_status": record.program_status.value,
        "storage_status": record.storage_status.value,
        "error": _error(record),
        "checkpoint": _newest_checkpoint(details.get("checkpoints") or []),
        "sync": _sync(details.get("last_sync")),
        "figures": None if answer is None else answer.figures.get(str(record.deployment_id)),
        "figures_problem": None if answer is None else answer.problem,
    }


def _error(record: PipelineRecord) -> dict[str, Any] | None:
    """Why the pipeline has stopped, or else why its program does not compile."""
    if record.deployment_error is not None:
        return {key: record.deployment_error.get(key) for key in ("error_code", "message")}
    if record.program_status not in COMPILE_ERRORS:
        return None
    found = record.program_error or {}
    messages = (found.get("sql_compilation") or {}).get("messages") or []
    texts = [str(message.get("message")) for message in messages if not message.get("warning")]
    return {"error_code": record.program_status.value, "message": "\n".join(texts) or str(found.get("system_error") or "")}


def _newest_checkpoint(listed: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The newest of the checkpoints that the storage has, with the time that its id tells."""
    newest = max(listed, key=lambda entry: UUID(entry["uuid"]), default=None)
    if newest is None:
        return None
    shown = {key: newest.get(key) for key in ("uuid", "size", "steps", "processed_records")}
    return {**shown, "at": _milliseconds_of(UUID(newest["uuid"]))}


def _sync(last: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if last is None else {"uuid": last["uuid"], "at": _milliseconds(datetime.fromisoformat(last["synced_at"]))}


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _milliseconds_of(identity: UUID) -> int | None:
    """When an id was made; None for one that does not tell."""
    return identity.int >> 80 if identity.version == 7 else None
