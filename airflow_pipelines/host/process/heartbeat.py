"""The heartbeat of a host: it tells the store that the host is well, and learns there whether the host is still wanted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from airflow_pipelines.common.database import DatabaseFile
from airflow_pipelines.contract.registry import Registry

logger = logging.getLogger(__name__)

_UNANSWERED = "the store has not answered"


class Heartbeat:
    """A heartbeat in a thread of its own, so that a slow or missing store does not hold up the rest of the host."""

    def __init__(self, host_id: UUID, registry: Registry, store: DatabaseFile, *, every_s: float, grace_s: float) -> None:
        """Make a heartbeat that does not beat yet.

        :param store: the file of the store's database, which may be deleted without the database noticing
        :param every_s: the seconds between two beats
        :param grace_s: the seconds that the host goes on without the store
        """
        self._host_id = host_id
        self._registry = registry
        self._store = store
        self._every_s = every_s
        self._grace_s = grace_s
        self._stopped = threading.Event()
        self._last_contact = time.monotonic()
        self._trouble = _UNANSWERED
        self._ended = False
        self._thread: threading.Thread | None = None

    def start(self, is_well: Callable[[], bool]) -> None:
        """Start to beat.

        :param is_well: returns True if the host can be used. While it returns False, no heartbeat is sent, so that the service asks
            the host itself
        """
        self._last_contact = time.monotonic()
        self._thread = threading.Thread(target=self._beat, args=(is_well,), name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """Stop beating, and wait for a beat in progress, at most ``timeout_s`` seconds."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout_s)

    @property
    def reason_to_end(self) -> str | None:
        """The reason why the host should end, or None while it is wanted as far as it knows. It never waits for the store."""
        if self._ended:
            return "the host's row was ended"
        silent = time.monotonic() - self._last_contact
        return f"{self._trouble}, for {silent:.0f} s by now" if silent >= self._grace_s else None

    def _beat(self, is_well: Callable[[], bool]) -> None:
        warned = 0.0
        while not self._stopped.wait(self._every_s) and not self._ended:
            trouble = self._beat_once(is_well)
            now = time.monotonic()
            if trouble is None:
                self._last_contact = now
            elif now - warned >= 10:
                warned = now
                logger.warning("%s; the host ends after %g s without its store", trouble, self._grace_s)
            self._trouble = trouble or _UNANSWERED

    def _beat_once(self, is_well: Callable[[], bool]) -> str | None:
        """Beat once, and return the problem that prevented it, or None if the store has answered."""
        try:
            if is_well():
                self._ended = not self._registry.update(self._host_id, heartbeat=time.time())
            else:
                logger.warning("the host does not answer its own question, and sends no heartbeat")
                host = self._registry.get(self._host_id)
                self._ended = host is None or host.ended_at is not None
            return self._store.gone
        except (SQLAlchemyError, OSError) as error:
            return f"the store cannot be reached: {error}"
        except Exception as error:  # a heartbeat that ends makes the host a lost one
            logger.exception("the heartbeat failed; it is tried again")
            return f"the heartbeat failed: {type(error).__name__}"
