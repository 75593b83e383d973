"""Finds out whether a host that sends no heartbeats hangs: it is asked itself, repeatedly, until that is certain.

A missing heartbeat alone says little: the store may be slow. An answer that does not come in time says little as well: the machine
may be busy, or the host, with something that holds Python's lock. A host is lost when there is neither, for several questions in a
row and several seconds in which it did nothing else and could have given one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from airflow_pipelines.common.cpu_time import OwnTime
from airflow_pipelines.contract.registry import HostRecord, Registry
from airflow_pipelines.service import processes

SUSPECT_S: Final = 5.0
"""A host on this machine is asked itself after so many seconds without a heartbeat."""
ASK_S: Final = 2.0
"""How often, and how long an answer is waited for."""
QUESTIONS: Final = 3
"""So many questions in a row without an answer are no accident."""
SILENT_S: Final = 5.0
"""For so long nothing may have come from the host, not counting the time in which it computed or waited for a processor."""

BUSY_S: Final = 300.0
"""A host that is silent for so long is lost, however busy it or its machine is: what computes may hold Python's lock."""

logger = logging.getLogger(__name__)


class Reply(StrEnum):
    """What came of a question to a host."""

    ANSWERED = "answered"
    SILENT = "silent"
    NOT_ASKED = "not asked"
    """The question could not be sent from here, which says nothing about the host."""


@dataclass(slots=True)
class _Inquiry:
    """What is known about one host since the heartbeat that was its last."""

    heartbeat: float | None
    ended_at: float | None = None
    """By the monotonic clock; None while the host is asked."""
    verdict: str | None = None

    def holds(self, host: HostRecord) -> bool:
        """Whether what is known is enough, so that the host need not be asked again now."""
        if self.ended_at is None:
            return True
        if self.verdict is not None:
            return self.heartbeat == host.heartbeat
        return time.monotonic() - self.ended_at < ASK_S


class HangWatch:
    """Asks hosts in the background, each in a thread of its own that ends when it is known how the host is. Thread-safe."""

    def __init__(self, registry: Registry, ask: Callable[[HostRecord, float], Reply]) -> None:
        """Make a watch that has nothing to do yet.

        :param ask: asks a host for its health, with a limit in seconds
        """
        self._registry = registry
        self._ask = ask
        self._lock = threading.Lock()
        self._inquiries: dict[UUID, _Inquiry] = {}
        self._closed = threading.Event()

    def verdict(self, host: HostRecord) -> str | None:
        """Why a host whose heartbeat is late is lost; None as long as it may live. Returns at once.

        :param host: the host as it is in the store now
        """
        with self._lock:
            known = self._inquiries.get(host.host_id)
            if known is not None and known.holds(host):
                return known.verdict
            inquiry = self._inquiries[host.host_id] = _Inquiry(host.heartbeat)
        threading.Thread(target=self._inquire, args=(host, inquiry), name=f"asking {host.host_id}", daemon=True).start()
        return None

    def forget(self, host_id: UUID) -> None:
        """Forget a host that beats or has ended."""
        with self._lock:
            inquiry = self._inquiries.get(host_id)
            if inquiry is not None and inquiry.ended_at is not None:
                del self._inquiries[host_id]

    def close(self) -> None:
        """Ask no more."""
        self._closed.set()

    def _inquire(self, host: HostRecord, inquiry: _Inquiry) -> None:
        try:
            inquiry.verdict = self._asked(host)
        finally:
            inquiry.ended_at = time.monotonic()

    def _asked(self, host: HostRecord) -> str | None:
        own_time = OwnTime(host.pid if host.machine == processes.this_machine() else None)
        questions = 0
        asked_since = time.monotonic()
        while not self._closed.is_set():
            began = time.monotonic()
            reply = self._ask(host, ASK_S)
            if reply is Reply.ANSWERED:
                return None
            self._closed.wait(max(0.0, began + ASK_S - time.monotonic()))
            # A service that was stopped itself saw nothing of what the host did meanwhile.
            idle = own_time.look(at_most=2 * ASK_S).idle
            if reply is Reply.NOT_ASKED:
                continue
            questions += 1
            busy = idle < SILENT_S and time.monotonic() - asked_since < BUSY_S
            if questions < QUESTIONS or busy:
                continue
            try:
                newest = self._registry.get(host.host_id)
            except SQLAlchemyError as error:
                logger.warning("The store does not say whether host %s beats again: %s", host.host_id, type(error).__name__)
                continue
            if newest is None or newest.heartbeat != host.heartbeat or newest.heartbeat is None:
                return None
            age = time.time() - newest.heartbeat
            return f"it sent no heartbeat for {age:.0f} s and did not answer {questions} times in a row at {host.url}"
        return None
