"""The keys of pushes whose rows a pipeline has, so that a push that is sent again is told so instead of adding its rows twice.

A key is kept exactly as the rows are: the journal has the keys of each step, and checkpoints those of the last days.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Final

from airflow_pipelines.host.intake import Push

KEPT_S: Final = 7 * 24 * 3600
MAX_KEPT: Final = 20_000
"""Of more keys the oldest are forgotten: each checkpoint has all of them."""


def kept_key(table: str, key: str) -> str:
    """What is kept of a key. It begins with its table, for what an emptied table has got may come again.

    :param table: the table
    :param key: the key, as the client has chosen it
    """
    return f"{table} {hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}"


class PushKeys:
    """The keys of one pipeline. Requests may come from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: dict[str, Push] = {}
        self._kept: dict[str, int] = {}
        """The keys whose rows are in a committed step, oldest first, each with when it was committed in seconds since the epoch."""

    def restore(self, keys: Mapping[str, int], emptied: Iterable[str] = ()) -> None:
        """Know the keys of what a pipeline goes on from.

        :param keys: what was saved
        :param emptied: the tables that have lost their rows since
        """
        lost = frozenset(emptied)
        with self._lock:
            self._kept = {key: at for key, at in keys.items() if key.rpartition(" ")[0] not in lost}

    def claim(self, key: str, push: Push) -> None:
        """Have a push be the one with a key, or note on it that it repeats another one: then it is accepted when that one is.

        :param key: its key
        :param push: the push
        """
        with self._lock:
            if key in self._kept:
                push.repeats = True
                push.accepted.set_result(None)
                return
            earlier = self._under_way.get(key)
            # Whoever has sent the earlier one may have gone before it was accepted: then its rows do not come.
            if earlier is not None and not earlier.accepted.cancelled():
                push.repeats, push.accepted = True, earlier.accepted
            else:
                self._under_way[key] = push

    def commit(self, keys: Mapping[str, int]) -> None:
        """The rows of pushes are in a committed step.

        :param keys: their keys
        """
        if not keys:
            return
        with self._lock:
            for key, at in keys.items():
                self._under_way.pop(key, None)
                self._kept[key] = at

    def kept(self) -> dict[str, int]:
        """The keys that a checkpoint keeps; older ones are forgotten."""
        oldest = time.time() - KEPT_S
        with self._lock:
            recent = [(key, at) for key, at in self._kept.items() if at >= oldest]
            self._kept = dict(recent[-MAX_KEPT:])
            return dict(self._kept)
