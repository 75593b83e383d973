"""The background reconciliation of pipelines, in a short-lived thread for each one that is not at rest."""

from __future__ import annotations

import logging
import threading
import time
from uuid import UUID

from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service.cluster import ClusterHealth
from airflow_pipelines.service.leases import DURATION_S, Leases
from airflow_pipelines.service.lifecycle.incarnation import at_rest
from airflow_pipelines.service.reconcile.reconciler import Reconciler
from airflow_pipelines.service.records import PipelineRecord
from airflow_pipelines.service.store import Conflict, Store

FIRST_POLL_S, USUAL_POLL_S, PATIENT_POLL_S = 0.02, 0.1, 0.5
PATIENT_AFTER_S = 30.0
ATTEMPTS = 5
SWEEP_S = 1.0
COMPLAIN_S = 60.0

logger = logging.getLogger(__name__)


class BackgroundReconciler:
    """The background threads of one service process. They are daemons: the next reader takes over what a dying process leaves."""

    def __init__(self, store: Store, reconciler: Reconciler, cluster: ClusterHealth, leases: Leases) -> None:
        self._store = store
        self._reconciler = reconciler
        self._cluster = cluster
        self._leases = leases
        self._lock = threading.Lock()
        self._wakes: dict[UUID, threading.Event] = {}
        self._closed = threading.Event()
        self._sweeper: threading.Thread | None = None

    def wake(self, pipeline_id: UUID) -> None:
        """Reconcile the pipeline now."""
        with self._lock:
            if self._closed.is_set():
                return
            if (event := self._wakes.get(pipeline_id)) is not None:
                event.set()
                return
            event = self._wakes[pipeline_id] = threading.Event()
            thread = threading.Thread(target=self._carry, args=(pipeline_id, event), name=f"pipeline-{pipeline_id}", daemon=True)
        thread.start()

    def sweep_forever(self) -> None:
        """Look after all pipelines, also those that nobody reads: for a service that stays up."""
        with self._lock:
            if self._sweeper is None and not self._closed.is_set():
                self._sweeper = threading.Thread(target=self._sweep, name="pipelines-sweeper", daemon=True)
                self._sweeper.start()

    def close(self, timeout_s: float = 5.0) -> None:
        """Stop the threads; unfinished work stays in the store for others."""
        self._closed.set()
        with self._lock:
            events = list(self._wakes.values())
        for event in events:
            event.set()
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            with self._lock:
                if not self._wakes:
                    return
            time.sleep(0.01)

    def _carry(self, pipeline_id: UUID, wake: threading.Event) -> None:
        lease = f"pipeline {pipeline_id}"
        held_since: float | None = None
        failures = 0
        before: PipelineRecord | None = None
        changed_at = time.monotonic()
        poll = FIRST_POLL_S
        try:
            while not self._closed.is_set():
                wake.clear()
                try:
                    record = self._look(pipeline_id)
                    if record is None or (at_rest(record) and self._leave(pipeline_id, wake)):
                        return
                    held_since = self._hold(lease, record, held_since)
                    if held_since is not None:
                        record = self._reconciler.drive(record)
                    failures = 0
                except Conflict:
                    continue
                except Exception:
                    # Any error must be logged and must not end the service; the pipeline is tried again.
                    failures += 1
                    logger.exception("Pipeline %s could not be carried forward (attempt %d)", pipeline_id, failures)
                    if failures >= ATTEMPTS:
                        return
                    wake.wait(1.0)
                    continue
                if record != before:
                    before, changed_at, poll = record, time.monotonic(), FIRST_POLL_S
                    continue
                patient = time.monotonic() - changed_at > PATIENT_AFTER_S
                wake.wait(PATIENT_POLL_S if patient else poll)
                poll = min(poll * 1.3, USUAL_POLL_S)
        finally:
            with self._lock:
                if self._wakes.get(pipeline_id) is wake:
                    del self._wakes[pipeline_id]
            if held_since is not None:
                self._leases.release(lease)

    def _hold(self, lease: str, record: PipelineRecord, held_since: float | None) -> float | None:
        """Acquire the pipeline's lease, renew it in time, or release it if only other processes can go on.

        :param lease: the name of the lease
        :param record: the pipeline
        :param held_since: the time at which it was last acquired or renewed, by the monotonic clock; None if it is not held
        :returns: the new value of ``held_since``
        """
        if self._reconciler.is_for_others(record):
            if held_since is not None:
                self._leases.release(lease)
            return None
        if held_since is not None and time.monotonic() - held_since <= DURATION_S / 3:
            return held_since
        return time.monotonic() if self._leases.acquire(lease) else None

    def _look(self, pipeline_id: UUID) -> PipelineRecord | None:
        record = self._store.get(pipeline_id)
        if record is None:
            return None
        try:
            return self._reconciler.observe(record)
        except Problem:
            if self._store.get(pipeline_id) is None:
                return None
            raise

    def _leave(self, pipeline_id: UUID, wake: threading.Event) -> bool:
        """Return True if the thread may end, since nobody has woken it since its last look."""
        with self._lock:
            if wake.is_set():
                return False
            del self._wakes[pipeline_id]
            return True

    def _sweep(self) -> None:
        complained: float | None = None
        while not self._closed.wait(SWEEP_S):
            try:
                self._reconciler.look_after_hosts()
                self._cluster.look()
                moving = self._store.moving()
            except Exception:
                # A store that is gone for hours must not fill a disk with stacks.
                if complained is None or time.monotonic() - complained > COMPLAIN_S:
                    complained = time.monotonic()
                    logger.exception("Looking after the pipelines failed; it is tried again every %g s", SWEEP_S)
                continue
            for pipeline_id in moving:
                self._look_after(pipeline_id)

    def _look_after(self, pipeline_id: UUID) -> None:
        try:
            record = self._look(pipeline_id)
            if record is not None and not at_rest(record):
                self.wake(pipeline_id)
        except Exception:
            logger.exception("Looking after pipeline %s failed; it is tried again", pipeline_id)
