"""The base class of conditions: a pure function of an observation. The other modules of this folder hold the conditions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions.observation import Observation, Request, describe_deployment_error
from airflow_pipelines.sdk.wire import is_ending


class PollOutcome(StrEnum):
    """The meaning of a poll for the wait."""

    PENDING = "pending"
    REACHED = "reached"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of a condition.

    It has the outcome, the reason, the figures that were found (small JSON), and the memory to keep until the next poll (JSON).
    """

    outcome: PollOutcome
    message: str
    result: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] | None = None


class Condition(ABC):
    """A condition to wait for. Subclasses are frozen dataclasses whose fields are JSON values."""

    kind: ClassVar[str]
    _kinds: ClassVar[dict[str, type[Condition]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            Condition._kinds[cls.kind] = cls

    @property
    @abstractmethod
    def goal(self) -> str:
        """The goal, as the end of a sentence that starts with "waiting for"."""

    def request(self) -> Request | None:
        """Return the request to make besides reading the status, or None if the status is enough."""
        return None

    @abstractmethod
    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Decide whether the condition holds, can still hold, or cannot hold any more.

        :param seen: the observation of the poll
        :param memory: the memory that the previous verdict asked to keep, None at the first poll
        :returns: the verdict
        """

    def to_wire(self) -> dict[str, Any]:
        """Return the condition as JSON, for a trigger's arguments."""
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]

    @staticmethod
    def from_wire(wire: Mapping[str, Any]) -> Condition:
        """Return the condition that :meth:`to_wire` serialised.

        :param wire: the JSON object
        :returns: the condition
        :raises ValueError: if the kind is unknown; the message lists the known ones
        """
        arguments = dict(wire)
        kind = arguments.pop("kind", None)
        if kind not in Condition._kinds:
            raise ValueError(f"unknown condition {kind!r}; known: {', '.join(sorted(Condition._kinds))}")
        return Condition._kinds[kind](**arguments)


def pending(seen: Observation, note: str = "", memory: dict[str, Any] | None = None) -> Verdict:
    """Return the verdict that the wait continues.

    :param seen: the observation of the poll
    :param note: the text to show beside the status
    :param memory: the memory to keep until the next poll
    """
    said = note or seen.progress
    return Verdict(PollOutcome.PENDING, f"{seen.status.name}{f', {said}' if said else ''}", memory=memory)


def missing() -> Verdict:
    """Return the verdict on a pipeline that does not exist."""
    return Verdict(PollOutcome.FAILED, "there is no such pipeline", {"status": PipelineStatus.NOT_FOUND.name})


def down(seen: Observation) -> Verdict:
    """Return the verdict on a pipeline that went down, with the error that took it down.

    :param seen: the observation of the poll
    """
    if seen.deployment_error:
        text = f"the pipeline is {seen.status.name} with an error: {describe_deployment_error(seen.deployment_error)}"
    else:
        text = f"the pipeline is {seen.status.name}: it was stopped, or never started"
    return Verdict(
        PollOutcome.FAILED, text, {"status": seen.status.name, "deployment_error": dict(seen.deployment_error or {}) or None}
    )


def is_stopped_on_purpose(result: Mapping[str, Any]) -> bool:
    """Return True if a wait failed because somebody stopped the pipeline or never started it, and not because of an error.

    :param result: the result of the verdict that failed
    """
    is_down = result.get("status") in (PipelineStatus.STOPPED.name, PipelineStatus.STOPPING.name)
    return is_down and not result.get("deployment_error")


class RuntimeCondition(Condition):
    """A condition on an answer of a running pipeline."""

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Judge by the status if it is enough, otherwise by the answer."""
        if seen.descriptor is None:
            return missing()
        if seen.is_down:
            return down(seen)
        if seen.refusal is not None:
            # A pipeline that is ending has its error in the descriptor at a later poll.
            if seen.refusal.status_code == 503 or is_ending(seen.refusal):
                return pending(seen, seen.refusal.message)
            return Verdict(
                PollOutcome.FAILED, str(seen.refusal), {"status": seen.status.name, "error_code": seen.refusal.error_code}
            )
        if seen.answer is None:
            return pending(seen)
        return self._judge_answer(seen, seen.answer, memory)

    @abstractmethod
    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        """Judge the answer to the condition's own request."""
