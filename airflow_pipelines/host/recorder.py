"""An incarnation's status: what it is now, and its changes in the registry in the order they happened."""

from __future__ import annotations

import threading
import time
from typing import Any
from uuid import UUID

from sqlalchemy.exc import OperationalError

from airflow_pipelines.host.deployment import RuntimeStatus, RuntimeTransition
from airflow_pipelines.host.pipeline_log import PipelineLog
from airflow_pipelines.host.registry import Registry

ATTEMPTS = 8
FIRST_WAIT_S = 0.05


class StatusRecorder:
    """Records transitions. ``condition`` is notified of each; ``status`` is the one recorded last."""

    def __init__(self, deployment_id: UUID, registry: Registry, condition: threading.Condition, log: PipelineLog) -> None:
        self.status: RuntimeStatus | None = None
        self._deployment_id = deployment_id
        self._registry = registry
        self._condition = condition
        self._log = log

    def record(
        self,
        status: RuntimeStatus,
        desired: RuntimeStatus,
        *,
        details: dict[str, Any] | None = None,
        error: dict[str, Any] | None = None,
        checkpoints: list[dict[str, Any]] | None = None,
    ) -> None:
        """Write a transition, then make it the current status. Raises when the store stays unreachable for several seconds."""
        transition = RuntimeTransition(
            deployment_id=self._deployment_id, status=status, desired=desired, details=details, error=error, checkpoints=checkpoints
        )
        for attempt in range(ATTEMPTS):
            try:
                self._registry.record(transition)
                break
            except OperationalError:
                # Another process may hold the store's database for a moment.
                if attempt == ATTEMPTS - 1:
                    raise
                self._log.limited("store", "the store is busy; trying again")
                time.sleep(FIRST_WAIT_S * 2**attempt)
        with self._condition:
            changed = status is not self.status
            self.status = status
            self._condition.notify_all()
        if changed:
            self._log.info("now %s", status.value)
