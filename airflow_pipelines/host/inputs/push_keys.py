"""The idempotency keys of the pushes that a pipeline has, so that a repeated push does not add its rows twice.

A key is as durable as its rows: the journal has the keys of each step, and checkpoints have those of the last days.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from operator import itemgetter
from typing import Final

from airflow_pipelines.host.inputs.intake import Push

KEPT_S: Final = 7 * 24 * 3600
MAX_KEPT: Final = 20_000
"""The maximum number of keys, because each checkpoint has all of them. If there are more, the oldest are dropped."""


def kept_key(table: str, key: str) -> str:
    """Return the stored form of a key. It begins with its table, because rows of a table that was emptied may come again.

    :param table: the table
    :param key: the key, as the client has chosen it
    """
    return f"{table} {hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}"


class PushKeys:
    """The keys of one pipeline. Requests may come from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[None]] = {}
        """The futures that are done when the rows of a key are accepted.

        The push itself is not kept: during a transaction, this would keep all its rows in memory.
        """
        self._kept: dict[str, int] = {}
        """The keys whose rows are in a committed step, oldest first, each with its commit time in seconds since the epoch."""
        self._has_unsaved = False

    @property
    def has_unsaved(self) -> bool:
        """True if keys came after the newest checkpoint, maybe with rows that changed nothing."""
        return self._has_unsaved

    def note_saved(self) -> None:
        """Note that a checkpoint has all keys."""
        self._has_unsaved = False

    def restore(self, keys: Mapping[str, int], emptied: Iterable[str] = ()) -> None:
        """Restore the keys of the state that a pipeline goes on from.

        :param keys: the saved keys
        :param emptied: the tables that have lost their rows since
        """
        lost = frozenset(emptied)
        known = [(key, at) for key, at in keys.items() if key.rpartition(" ")[0] not in lost]
        with self._lock:
            self._kept = dict(sorted(known, key=itemgetter(1)))
            self._forget_oldest()

    def claim(self, key: str, push: Push) -> None:
        """Register a push as the first one with a key, or mark it as a repetition of another: then it is accepted when that one is.

        :param key: its key
        :param push: the push
        """
        with self._lock:
            if self._kept.get(key, -math.inf) >= time.time() - KEPT_S:
                push.repeats = True
                push.accepted.set_result(None)
                return
            earlier = self._under_way.get(key)
            # The client of the earlier push may have gone before it was accepted. Then its rows are not taken.
            if earlier is not None and not earlier.cancelled():
                push.repeats, push.accepted = True, earlier
            else:
                self._under_way[key] = push.accepted

    def commit(self, keys: Mapping[str, int]) -> None:
        """Note that the rows of pushes are in a committed step.

        :param keys: their keys
        """
        if not keys:
            return
        with self._lock:
            for key, at in keys.items():
                self._under_way.pop(key, None)
                # Moved behind all others, because the keys are in the order of their age.
                self._kept.pop(key, None)
                self._kept[key] = at
            self._forget_oldest()
            self._has_unsaved = True

    def collect_kept(self) -> dict[str, int]:
        """Return the keys that a checkpoint keeps; older ones are dropped."""
        with self._lock:
            self._forget_oldest()
            return dict(self._kept)

    def _forget_oldest(self) -> None:
        """Drop keys that are too old or too many. This also happens between checkpoints, because without storage there are none."""
        limit = time.time() - KEPT_S
        while self._kept:
            oldest = next(iter(self._kept))
            if len(self._kept) <= MAX_KEPT and self._kept[oldest] >= limit:
                return
            del self._kept[oldest]
