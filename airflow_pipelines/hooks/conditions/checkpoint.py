"""Conditions on how much of a pipeline is safe: in a checkpoint, and in a checkpoint's copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.hooks.conditions.condition import Condition, Outcome, RuntimeCondition, Verdict, down, missing, pending
from airflow_pipelines.hooks.conditions.observation import Observation, Request


def time_of(uuid: UUID) -> datetime:
    """When a checkpoint was taken. Its identity begins with that moment, in milliseconds (UUID version 7).

    :param uuid: the checkpoint's identity
    """
    return datetime.fromtimestamp((uuid.int >> 80) / 1000, UTC)


@dataclass(frozen=True)
class _Limit:
    """What a checkpoint has to be newer than: another checkpoint or a moment."""

    limit: UUID | datetime

    @classmethod
    def of(cls, text: str) -> Self:
        """Read the identity of a checkpoint, or a moment as ISO 8601; one without a zone is in UTC.

        :param text: either
        :raises ValueError: it is neither
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
        """Whether a checkpoint is newer.

        :param uuid: its identity
        """
        return uuid > self.limit if isinstance(self.limit, UUID) else time_of(uuid) > self.limit


def _found(uuid: UUID) -> dict[str, Any]:
    return {"checkpoint": str(uuid), "taken_at": time_of(uuid).isoformat()}


def _seen_newest(noun: str, newest: UUID | None) -> str:
    return f"no {noun} yet" if newest is None else f"the newest {noun} is of {time_of(newest).isoformat(timespec='seconds')}"


@dataclass(frozen=True)
class CheckpointCondition(Condition):
    """The pipeline has a checkpoint newer than another one, or than a moment. One that is there already counts, whether the
    pipeline runs or not.

    :param newer_than: the identity of a checkpoint, or a moment as ISO 8601
    """

    kind = "checkpoint"
    newer_than: str

    def __post_init__(self) -> None:
        _Limit.of(self.newer_than)

    @property
    def goal(self) -> str:
        """What it is to be newer than."""
        return f"a checkpoint newer than {self.newer_than}"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Compare the newest that is listed."""
        if seen.descriptor is None:
            return missing()
        listed = (seen.descriptor.get("storage_status_details") or {}).get("checkpoints") or []
        by_uuid = {UUID(str(entry["uuid"])): entry for entry in listed}
        newest = max(by_uuid, default=None)
        if newest is not None and _Limit.of(self.newer_than).admits(newest):
            figures = {name: by_uuid[newest].get(name) for name in ("steps", "processed_records", "size")}
            return Verdict(Outcome.REACHED, f"checkpoint {newest}", _found(newest) | figures)
        if seen.is_down:
            return down(seen)
        return pending(seen, _seen_newest("checkpoint", newest))


@dataclass(frozen=True)
class SyncCondition(RuntimeCondition):
    """The object store has the copy of a checkpoint newer than another one, or than a moment.

    :param newer_than: the identity of a checkpoint, or a moment as ISO 8601
    """

    kind = "sync"
    newer_than: str

    def __post_init__(self) -> None:
        _Limit.of(self.newer_than)

    @property
    def goal(self) -> str:
        """What it is to be newer than."""
        return f"a copy of a checkpoint newer than {self.newer_than}"

    def request(self) -> Request:
        """Ask what the object store has, which no restart of the pipeline forgets."""
        return Request("/checkpoints/remote")

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """As every condition on a running pipeline, but that the newest copy is known of a stopped one, too; an object store that
        is away may come back.
        """
        last = ((seen.descriptor or {}).get("storage_status_details") or {}).get("last_sync")
        if last and _Limit.of(self.newer_than).admits(newest := UUID(str(last["uuid"]))):
            return Verdict(Outcome.REACHED, f"copy of checkpoint {newest}", _found(newest))
        if seen.refusal is not None and seen.refusal.error_code == ErrorCode.CHECKPOINT_FETCH_ERROR and not seen.is_down:
            return pending(seen, seen.refusal.message)
        return super().judge(seen, memory)

    def _judge_answer(self, seen: Observation, answer: Any, memory: Mapping[str, Any] | None) -> Verdict:
        newest = max((UUID(str(entry["uuid"])) for entry in answer), default=None)
        if newest is not None and _Limit.of(self.newer_than).admits(newest):
            return Verdict(Outcome.REACHED, f"copy of checkpoint {newest}", _found(newest))
        return pending(seen, _seen_newest("copy of a checkpoint", newest))
