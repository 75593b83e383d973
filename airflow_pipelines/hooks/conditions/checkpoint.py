"""Conditions on checkpoints and on their copies in the object store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.hooks.conditions.condition import Condition, PollOutcome, RuntimeCondition, Verdict, down, missing, pending
from airflow_pipelines.hooks.conditions.observation import Observation, Request


def time_of(uuid: UUID) -> datetime:
    """Return the time at which a checkpoint was taken.

    The checkpoint's identity begins with that time, in milliseconds (UUID version 7).

    :param uuid: the checkpoint's identity
    """
    return datetime.fromtimestamp((uuid.int >> 80) / 1000, UTC)


@dataclass(frozen=True)
class _Limit:
    """The lower limit of the age of a checkpoint: another checkpoint or a time."""

    limit: UUID | datetime

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse the identity of a checkpoint, or a time as ISO 8601; a time without a zone is in UTC.

        :param text: the identity or the time
        :raises ValueError: if it is neither
        """
        try:
            return cls(UUID(text))
        except ValueError:
            pass
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"newer_than is {text!r}, which is neither the UUID of a checkpoint nor a time as ISO 8601") from None
        return cls(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))

    def admits(self, uuid: UUID) -> bool:
        """Return True if a checkpoint is newer than the limit.

        :param uuid: the checkpoint's identity
        """
        return uuid > self.limit if isinstance(self.limit, UUID) else time_of(uuid) > self.limit


def _to_result(uuid: UUID) -> dict[str, Any]:
    return {"checkpoint": str(uuid), "taken_at": time_of(uuid).isoformat()}


def _describe_newest(noun: str, newest: UUID | None) -> str:
    return f"no {noun} yet" if newest is None else f"the newest {noun} is of {time_of(newest).isoformat(timespec='seconds')}"


@dataclass(frozen=True)
class CheckpointCondition(Condition):
    """The condition that the pipeline has a checkpoint newer than another one, or than a time.

    A checkpoint that exists already counts, whether the pipeline runs or not.

    :param newer_than: the identity of a checkpoint, or a time as ISO 8601
    """

    kind = "checkpoint"
    newer_than: str

    def __post_init__(self) -> None:
        _Limit.of(self.newer_than)

    @property
    def goal(self) -> str:
        """The goal, with the limit."""
        return f"a checkpoint newer than {self.newer_than}"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Compare the newest checkpoint of the descriptor with the limit."""
        if seen.descriptor is None:
            return missing()
        listed = (seen.descriptor.get("storage_status_details") or {}).get("checkpoints") or []
        by_uuid = {UUID(str(entry["uuid"])): entry for entry in listed}
        newest = max(by_uuid, default=None)
        if newest is not None and _Limit.of(self.newer_than).admits(newest):
            figures = {name: by_uuid[newest].get(name) for name in ("steps", "processed_records", "size")}
            return Verdict(PollOutcome.REACHED, f"checkpoint {newest}", _to_result(newest) | figures)
        if seen.is_down:
            return down(seen)
        return pending(seen, _describe_newest("checkpoint", newest))


@dataclass(frozen=True)
class SyncCondition(RuntimeCondition):
    """The condition that the object store has the copy of a checkpoint newer than another one, or than a time.

    :param newer_than: the identity of a checkpoint, or a time as ISO 8601
    """

    kind = "sync"
    newer_than: str

    def __post_init__(self) -> None:
        _Limit.of(self.newer_than)

    @property
    def goal(self) -> str:
        """The goal, with the limit."""
        return f"a copy of a checkpoint newer than {self.newer_than}"

    def request(self) -> Request:
        """Request the list of copies in the object store, which a restart of the pipeline does not reset."""
        return Request("/checkpoints/remote")

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Judge like every condition on a running pipeline, with two exceptions.

        The newest copy of a stopped pipeline counts too. An object store that cannot be reached keeps the wait pending.
        """
        last = ((seen.descriptor or {}).get("storage_status_details") or {}).get("last_sync")
        if last and _Limit.of(self.newer_than).admits(newest := UUID(str(last["uuid"]))):
            return Verdict(PollOutcome.REACHED, f"copy of checkpoint {newest}", _to_result(newest))
        if seen.refusal is not None and seen.refusal.error_code == ErrorCode.CHECKPOINT_FETCH_ERROR and not seen.is_down:
            return pending(seen, seen.refusal.message)
        return super().judge(seen, memory)

    def _judge_answer(self, seen: Observation, answer: Any, memory: Mapping[str, Any] | None) -> Verdict:
        newest = max((UUID(str(entry["uuid"])) for entry in answer), default=None)
        if newest is not None and _Limit.of(self.newer_than).admits(newest):
            return Verdict(PollOutcome.REACHED, f"copy of checkpoint {newest}", _to_result(newest))
        return pending(seen, _describe_newest("copy of a checkpoint", newest))
