"""The retention of checkpoint copies in the object store, and the removal of files that only outdated copies need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from airflow_pipelines.engine.storage.sync import RemoteCheckpoints

DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class CheckpointRetention:
    """The limits of retention. A copy is removed when both allow it.

    :param min_count: the number of the newest copies that are kept, whatever their age; the newest always is
    :param min_age_days: the age in days below which copies are kept, however many there are
    """

    min_count: int = 10
    min_age_days: float = 30.0

    def but(self, min_count: int | None, min_age_days: float | None) -> CheckpointRetention:
        """Return the same limits, except for those that are given."""
        return CheckpointRetention(
            self.min_count if min_count is None else min_count, self.min_age_days if min_age_days is None else min_age_days
        )

    def find_outdated(self, uuids: Sequence[UUID], now: float) -> Sequence[UUID]:
        """Return the copies that may be removed.

        :param uuids: all copies, oldest first; their ids contain the time of their creation (UUID version 7)
        :param now: the time in seconds since the epoch
        """
        older = uuids[: -max(self.min_count, 1)]
        limit = now - self.min_age_days * DAY_S
        return [uuid for uuid in older if _made_at(uuid) < limit]


def _made_at(uuid: UUID) -> float:
    """Return the time at which an id of version 7 was made, in seconds since the epoch.

    Its first 48 bits are milliseconds (RFC 9562).
    """
    return (uuid.int >> 80) / 1000


class RemoteGarbage:
    """The removal of outdated copies from a bucket that belongs to this pipeline. It caches the files that each copy needs."""

    def __init__(self, remote: RemoteCheckpoints) -> None:
        """Prepare the removal. Nothing is removed yet.

        :param remote: the bucket
        """
        self._remote = remote
        self._files: dict[UUID, frozenset[str]] = {}

    def collect(self, retention: CheckpointRetention, now: float, *, but: UUID) -> int:
        """Remove outdated copies: first their manifests, then the batch files that no other copy names.

        A kill in between leaves files that nothing names, but never a manifest without its files.

        :param retention: the limits of retention
        :param now: the time in seconds since the epoch
        :param but: a copy that stays this time even if it is outdated, because it has just been requested
        :returns: the number of copies removed
        :raises SyncError: when the bucket cannot be read or written; the rest is removed the next time
        """
        there = self._remote.list()
        outdated = [uuid for uuid in retention.find_outdated(there, now) if uuid != but]
        if not outdated:
            return 0
        kept = [uuid for uuid in there if uuid not in set(outdated)]
        needed = frozenset[str]().union(*(self._files_of(uuid) for uuid in kept))
        freed = frozenset[str]().union(*(self._files_of(uuid) for uuid in outdated)) - needed
        for uuid in outdated:
            self._remote.remove_manifest(uuid)
            del self._files[uuid]
        self._remote.remove_batches(sorted(freed))
        return len(outdated)

    def _files_of(self, uuid: UUID) -> frozenset[str]:
        if uuid not in self._files:
            self._files[uuid] = frozenset(self._remote.files_of(uuid))
        return self._files[uuid]
