"""The detection of hosts that hang: a host that sends no heartbeats is asked directly, repeatedly, until the result is certain.

A missing heartbeat alone proves little: the store may be slow. A missing answer proves little either: the machine may be busy, or
the host may run code that holds Python's lock. A host is lost if there is neither, for several questions in a row and several
seconds in which it was idle and could have answered.
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
"""The number of seconds without a heartbeat after which a host on this machine is asked directly."""
ASK_S: Final = 2.0
"""The interval between questions and the timeout of an answer, in seconds."""
QUESTIONS: Final = 3
"""The number of questions in a row without an answer that cannot be an accident."""
SILENT_S: Final = 5.0
"""The number of seconds of silence, without the time in which the host computed or waited for a processor, before it is lost."""

BUSY_S: Final = 300.0
"""The number of seconds of silence after which a host is lost even if it or its machine is busy.

A computation may hold Python's lock for a while, but not for so long.
"""

logger = logging.getLogger(__name__)


class Reply(StrEnum):
    """The outcome of a question to a host."""

    ANSWERED = "answered"
    SILENT = "silent"
    NOT_ASKED = "not asked"
    """The outcome if the question could not be sent from here, which proves nothing about the host."""


@dataclass(slots=True)
class _Inquiry:
    """The findings about one host since its last heartbeat."""

    heartbeat: float | None
    ended_at: float | None = None
    """The end of the inquiry by the monotonic clock; None while the host is being asked."""
    verdict: str | None = None

    def holds(self, host: HostRecord) -> bool:
        """Return True if the findings are still valid, so that the host need not be asked again now."""
        if self.ended_at is None:
            return True
        if self.verdict is not None:
            return self.heartbeat == host.heartbeat
        return time.monotonic() - self.ended_at < ASK_S


class HangWatch:
    """A watch that asks hosts in the background, each in a separate thread that ends with a result. Thread-safe."""

    def __init__(self, registry: Registry, ask: Callable[[HostRecord, float], Reply]) -> None:
        """Create a watch that has nothing to do yet.

        :param ask: a function that asks a host for its health, with a timeout in seconds
        """
        self._registry = registry
        self._ask = ask
        self._lock = threading.Lock()
        self._inquiries: dict[UUID, _Inquiry] = {}
        self._closed = threading.Event()

    def verdict(self, host: HostRecord) -> str | None:
        """Return the reason why a host with a late heartbeat is lost; None as long as it may live. Does not block.

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
        """Forget a host that sends heartbeats again or has ended."""
        with self._lock:
            inquiry = self._inquiries.get(host_id)
            if inquiry is not None and inquiry.ended_at is not None:
                del self._inquiries[host_id]

    def close(self) -> None:
        """Stop asking."""
        self._closed.set()

    def _inquire(self, host: HostRecord, inquiry: _Inquiry) -> None:
        try:
            inquiry.verdict = self._find_verdict(host)
        finally:
            inquiry.ended_at = time.monotonic()

    def _find_verdict(self, host: HostRecord) -> str | None:
        own_time = OwnTime(host.pid if host.machine == processes.this_machine() else None)
        questions = 0
        asked_since = time.monotonic()
        while not self._closed.is_set():
            began = time.monotonic()
            reply = self._ask(host, ASK_S)
            if reply is Reply.ANSWERED:
                return None
            self._closed.wait(max(0.0, began + ASK_S - time.monotonic()))
            # A service that was suspended itself does not know what the host did meanwhile.
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
