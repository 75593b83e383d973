"""The recorder of an incarnation's status changes in the store, in the order in which they occurred."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Final
from uuid import UUID

from sqlalchemy.exc import DataError, DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from airflow_pipelines.common.retries import BackOff, RetryPolicy
from airflow_pipelines.contract.deployment import RuntimeTransition
from airflow_pipelines.contract.registry import Registry
from airflow_pipelines.contract.statuses import RuntimeStatus
from airflow_pipelines.host.state.pipeline_log import PipelineLog

TELL_S: Final = 1.0
"""The seconds that a change of the status waits for the store. Then the pipeline goes on, and the store learns of it later."""
RETRIES = RetryPolicy(first_wait_s=0.05, longest_wait_s=2.0)


class StatusRecorder:
    """A recorder of transitions.

    A thread of its own writes them to the store, in order, and retries until the store has taken them: a slow or missing store must
    not hold up the pipeline.
    """

    def __init__(self, deployment_id: UUID, registry: Registry, log: PipelineLog) -> None:
        self._deployment_id = deployment_id
        self._registry = registry
        self._log = log
        self._untold: deque[RuntimeTransition] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    def record(
        self,
        status: RuntimeStatus,
        desired: RuntimeStatus,
        *,
        details: dict[str, Any] | None = None,
        error: dict[str, Any] | None = None,
        checkpoints: list[dict[str, Any]] | None = None,
        last_sync: dict[str, Any] | None = None,
    ) -> None:
        """Queue a transition, and wait until it is written, at most :data:`TELL_S` seconds.

        :param status: the new status of the incarnation
        :param desired: its desired status
        :param details: further details of the transition
        :param error: a deployment error
        :param checkpoints: all current checkpoints, if they have changed
        :param last_sync: the newest copy of a checkpoint, or None if there is none
        """
        if error is not None:
            error = {**error, "message": self._log.redact(str(error["message"]))}
        transition = RuntimeTransition(
            deployment_id=self._deployment_id,
            status=status,
            desired=desired,
            details=details,
            error=error,
            checkpoints=checkpoints,
            last_sync=last_sync,
        )
        with self._changed:
            self._add(transition)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._tell, name=f"telling {self._deployment_id}", daemon=True)
                self._thread.start()
        self._wait_until_told(TELL_S)

    def close(self, limit_s: float) -> None:
        """Wait until the store has all transitions, at most ``limit_s`` seconds; the rest is given up."""
        if not self._wait_until_told(limit_s):
            self._log.failure("the store cannot be told how the pipeline ended: it has not answered for %g s", limit_s)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _add(self, transition: RuntimeTransition) -> None:
        """Queue a transition.

        It replaces a waiting one with the same status, desired status and error, so that the queue stays short.
        """
        # The first one may be in progress.
        if len(self._untold) > 1:
            last = self._untold[-1]
            same = (last.status, last.desired, last.error) == (transition.status, transition.desired, transition.error)
            if same:
                listed = last.checkpoints if transition.checkpoints is None else transition.checkpoints
                transition = transition.model_copy(update={"checkpoints": listed})
                self._untold.pop()
        self._untold.append(transition)

    def _wait_until_told(self, limit_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._untold, limit_s)

    def _tell(self) -> None:
        back_off = BackOff(RETRIES)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._untold or self._closed)
                if self._closed:
                    return
                transition = self._untold[0]
            if not self._try_to_record(transition):
                time.sleep(back_off.next_s())
                continue
            back_off.reset()
            with self._changed:
                self._untold.popleft()
                self._changed.notify_all()

    def _try_to_record(self, transition: RuntimeTransition) -> bool:
        """Return True if a transition is finished: it is written, or never can be."""
        try:
            self._registry.record(transition)
        except (DBAPIError, NoConnectionError) as error:
            if not isinstance(error, DataError):
                self._log.warn_limited("store", "the store cannot be told the status; it is tried again: %s", type(error).__name__)
                return False
            self._log.failure("the store does not take the status %s", transition.status.value, cause=error)
        except SQLAlchemyError as error:
            self._log.failure("the store does not take the status %s", transition.status.value, cause=error)
        return True
