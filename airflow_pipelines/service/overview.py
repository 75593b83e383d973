"""All pipelines at a glance: their statuses, newest checkpoints, and the figures that the hosts of running ones report."""

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
"""The maximum number of hosts that are asked at the same time."""
PATIENCE_S: Final = 2.0
"""The number of seconds to wait for a host; without an answer its pipelines are shown without figures until the next look."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _HostAnswer:
    """The figures of a host's deployments, by their ids; or the reason why there are none."""

    figures: Mapping[str, Any]
    problem: str | None = None


def overview(control_plane: ControlPlane) -> dict[str, Any]:
    """Return all pipelines, oldest first. Each host is asked once, and none is started.

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
        answers = pool.map(lambda host: _request_figures(control_plane, host), hosts)
        return {host.host_id: answer for host, answer in zip(hosts, answers, strict=True)}


def _request_figures(control_plane: ControlPlane, host: HostRecord) -> _HostAnswer:
    try:
        response = control_plane.hosts.call(host, "GET", "/figures", timeout_s=PATIENCE_S)
    except HostUnreachable as error:
        logger.info("The host %s gives no figures: %s", host.host_id, error)
        return _HostAnswer({}, f"its host does not answer: {error}")
    if not response.is_success:
        # Includes hosts of an earlier release, which do not know this endpoint.
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
    """Return the error that stopped the pipeline, or else the compile error of its program."""
    if record.deployment_error is not None:
        return {key: record.deployment_error.get(key) for key in ("error_code", "message")}
    if record.program_status not in COMPILE_ERRORS:
        return None
    program_error = record.program_error or {}
    messages = (program_error.get("sql_compilation") or {}).get("messages") or []
    texts = [str(message.get("message")) for message in messages if not message.get("warning")]
    return {"error_code": record.program_status.value, "message": "\n".join(texts) or str(program_error.get("system_error") or "")}


def _newest_checkpoint(listed: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the newest checkpoint of the storage, with the time encoded in its id."""
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
    """Return the creation time of an id; None if the id does not contain it."""
    return identity.int >> 80 if identity.version == 7 else None
