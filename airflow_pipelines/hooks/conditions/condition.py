"""A condition: a pure judgement of what a poll saw. The other modules of this folder are the conditions there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions.observation import Observation, Request, describe_deployment_error


class Outcome(StrEnum):
    """What a poll means for the wait."""

    PENDING = "pending"
    REACHED = "reached"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A condition's judgement: the outcome, why, what was found (small JSON), and what to remember until the next poll (JSON)."""

    outcome: Outcome
    message: str
    result: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] | None = None


class Condition(ABC):
    """Something to wait for. Subclasses are frozen dataclasses whose fields are JSON values."""

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type[Condition]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            Condition._kinds[cls.kind] = cls

    @property
    @abstractmethod
    def goal(self) -> str:
        """What is awaited, as the end of a sentence that starts with "waiting for"."""

    def request(self) -> Request | None:
        """The request to make besides reading the status; None when the status is enough."""
        return None

    @abstractmethod
    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Decide whether the condition holds, can still hold, or cannot hold any more.

        :param seen: what the poll found
        :param memory: what the previous verdict asked to remember, None at the first poll
        :returns: the verdict
        """

    def to_wire(self) -> dict[str, Any]:
        """The condition as JSON, for a trigger's arguments."""
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]

    @staticmethod
    def from_wire(wire: Mapping[str, Any]) -> Condition:
        """The condition that ``to_wire`` wrote.

        :param wire: the JSON object
        :returns: the condition
        :raises ValueError: when the kind is unknown; the message lists the known ones
        """
        arguments = dict(wire)
        kind = arguments.pop("kind", None)
        if kind not in Condition._kinds:
            raise ValueError(f"unknown condition {kind!r}; known: {', '.join(sorted(Condition._kinds))}")
        return Condition._kinds[kind](**arguments)


def pending(seen: Observation, note: str = "", memory: dict[str, Any] | None = None) -> Verdict:
    """The verdict that the wait goes on.

    :param seen: what the poll found
    :param note: what to say beside the status
    :param memory: what to remember until the next poll
    """
    said = note or seen.progress
    return Verdict(Outcome.PENDING, f"{seen.status.name}{f', {said}' if said else ''}", memory=memory)


def missing() -> Verdict:
    """The verdict on a pipeline that does not exist."""
    return Verdict(Outcome.FAILED, "there is no such pipeline", {"status": PipelineStatus.NOT_FOUND.name})


def down(seen: Observation) -> Verdict:
    """The verdict on a pipeline that went down, with the error that took it down.

    :param seen: what the poll found
    """
    if seen.deployment_error:
        text = f"the pipeline is {seen.status.name} with an error: {describe_deployment_error(seen.deployment_error)}"
    else:
        text = f"the pipeline is {seen.status.name}: it was stopped, or never started"
    return Verdict(
        Outcome.FAILED, text, {"status": seen.status.name, "deployment_error": dict(seen.deployment_error or {}) or None}
    )


def is_stopped_on_purpose(found: Mapping[str, Any]) -> bool:
    """Tell a pipeline that somebody has stopped, or has never started, from other reasons for a wait to fail.

    :param found: the result of the verdict that failed
    """
    is_down = found.get("status") in (PipelineStatus.STOPPED.name, PipelineStatus.STOPPING.name)
    return is_down and not found.get("deployment_error")


class RuntimeCondition(Condition):
    """A condition on what a running pipeline answers."""

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Decide by the status where it is enough, otherwise by the answer."""
        if seen.descriptor is None:
            return missing()
        if seen.is_down:
            return down(seen)
        if seen.refusal is not None:
            if seen.refusal.status_code == 503:
                return pending(seen, seen.refusal.message)
            return Verdict(Outcome.FAILED, str(seen.refusal), {"status": seen.status.name, "error_code": seen.refusal.error_code})
        if seen.answer is None:
            return pending(seen)
        return self._judge_answer(seen, seen.answer, memory)

    @abstractmethod
    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        """Judge the answer to the condition's own request."""
