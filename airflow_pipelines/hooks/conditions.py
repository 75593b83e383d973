"""What one can wait for on a pipeline, as pure judgements of what was seen.

A condition reads the pipeline's status and, where that is not enough, the answer to one request of its own. Polling in a
worker and polling in the triggerer use the same conditions, so both give the same answer. Nothing here does I/O or knows Airflow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.errors import PipelineAPIError, PipelinesError

_TRANSIENT_STATUS_CODES = frozenset({408, 429, 500, 502, 504})
# A runtime request in one of these phases is early, not wrong.
_PHASE_CODES = frozenset(
    {
        ErrorCode.AWAITING_APPROVAL,
        ErrorCode.BOOTSTRAP_IN_PROGRESS,
        ErrorCode.INITIALIZING,
        ErrorCode.PIPELINE_INTERACTION_NOT_DEPLOYED,
        ErrorCode.PIPELINE_INTERACTION_UNREACHABLE,
        ErrorCode.PIPELINE_UNAVAILABLE,
        ErrorCode.RESTORE_IN_PROGRESS,
        ErrorCode.SUSPENDED,
    }
)


class Outcome(StrEnum):
    """What a poll means for the wait."""

    PENDING = "pending"
    REACHED = "reached"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Request:
    """A GET below a pipeline's own path: ``tail`` such as ``/stats``, and query parameters."""

    tail: str
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observation:
    """What one poll found of a pipeline.

    :param descriptor: the pipeline with the status selector, None when there is no such pipeline
    :param at: seconds since the epoch
    :param answer: what the condition's own request got, None when it was not asked or refused
    :param refusal: the error that request got
    """

    descriptor: Mapping[str, Any] | None
    at: float
    answer: Mapping[str, Any] | None = None
    refusal: PipelineAPIError | None = None

    @property
    def status(self) -> PipelineStatus:
        """The pipeline's status; NOT_FOUND when there is none."""
        if self.descriptor is None:
            return PipelineStatus.NOT_FOUND
        return PipelineStatus.from_str(str(self.descriptor["deployment_status"]))

    @property
    def is_down(self) -> bool:
        """Whether the pipeline is stopped, or on its way there, and nobody asked for it to run."""
        return (
            self.descriptor is not None
            and self.status in (PipelineStatus.STOPPED, PipelineStatus.STOPPING)
            and self.descriptor.get("deployment_desired_status") == "Stopped"
        )

    @property
    def deployment_error(self) -> Mapping[str, Any] | None:
        """The error that took the pipeline down, or None."""
        return (self.descriptor or {}).get("deployment_error") or None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A condition's judgement: the outcome, why, what was found (small JSON), and what to remember until the next poll (JSON)."""

    outcome: Outcome
    message: str
    result: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] | None = None


def is_transient(error: PipelinesError | ConnectionError) -> bool:
    """Whether trying again may help: the service was not reached, is overloaded, or failed for a reason of its own."""
    if isinstance(error, PipelineAPIError):
        return error.status_code in _TRANSIENT_STATUS_CODES or (error.status_code == 503 and error.error_code not in _PHASE_CODES)
    return isinstance(error, (ConnectionError, TimeoutError))


def describe_deployment_error(error: Mapping[str, Any] | None) -> str:
    """A deployment error as text: its code and its message, which ends with the host's last log lines when the host was lost."""
    if not error:
        return "no error was recorded"
    code = error.get("error_code")
    return f"{code}: {error.get('message', '')}" if code else str(error.get("message", ""))


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


def _pending(seen: Observation, note: str = "", memory: dict[str, Any] | None = None) -> Verdict:
    return Verdict(Outcome.PENDING, f"{seen.status.name}{f', {note}' if note else ''}", memory=memory)


def _missing() -> Verdict:
    return Verdict(Outcome.FAILED, "there is no such pipeline", {"status": PipelineStatus.NOT_FOUND.name})


def _down(seen: Observation) -> Verdict:
    if seen.deployment_error:
        text = f"the pipeline is {seen.status.name} with an error: {describe_deployment_error(seen.deployment_error)}"
    else:
        text = f"the pipeline is {seen.status.name}: it was stopped, or never started"
    return Verdict(
        Outcome.FAILED, text, {"status": seen.status.name, "deployment_error": dict(seen.deployment_error or {}) or None}
    )


@dataclass(frozen=True)
class StatusCondition(Condition):
    """The pipeline has one of ``statuses`` (names of PipelineStatus). A pipeline that went down with an error fails the wait."""

    kind = "status"
    statuses: tuple[str, ...]

    def __post_init__(self) -> None:
        names = tuple(PipelineStatus.from_str(status).name for status in self.statuses)
        if not names:
            raise ValueError("a status to wait for is needed")
        object.__setattr__(self, "statuses", names)

    @property
    def goal(self) -> str:
        """The statuses."""
        return f"status {' or '.join(self.statuses)}"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Compare the status."""
        if seen.status.name in self.statuses:
            return Verdict(Outcome.REACHED, seen.status.name, {"status": seen.status.name})
        if seen.descriptor is None:
            return _missing()
        if seen.is_down and seen.deployment_error:
            return _down(seen)
        return _pending(seen)


@dataclass(frozen=True)
class StartedCondition(StatusCondition):
    """Like StatusCondition, for one who has just asked the pipeline to start: that it is stopped on request fails the wait too."""

    kind = "started"

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Compare the status, and give up on a pipeline nobody wants to run any more."""
        verdict = super().judge(seen, memory)
        return _down(seen) if verdict.outcome is Outcome.PENDING and seen.is_down else verdict


class _RuntimeCondition(Condition):
    """A condition on what a running pipeline answers."""

    def judge(self, seen: Observation, memory: Mapping[str, Any] | None) -> Verdict:
        """Decide by the status where it is enough, otherwise by the answer."""
        if seen.descriptor is None:
            return _missing()
        if seen.is_down:
            return _down(seen)
        if seen.refusal is not None:
            if seen.refusal.status_code == 503:
                return _pending(seen, seen.refusal.message)
            return Verdict(Outcome.FAILED, str(seen.refusal), {"status": seen.status.name, "error_code": seen.refusal.error_code})
        if seen.answer is None:
            return _pending(seen)
        return self._judge_answer(seen, seen.answer, memory)

    @abstractmethod
    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        """Judge the answer to the condition's own request."""


@dataclass(frozen=True)
class TokenCondition(_RuntimeCondition):
    """Everything received before the completion ``token`` was made is processed and delivered.

    :param checkpoint: and no kill of the pipeline can lose it; a checkpoint is taken where that is needed
    """

    kind = "token"
    token: str
    checkpoint: bool = False

    @property
    def goal(self) -> str:
        """The token, shortened."""
        return f"completion token {self.token[:12]}..." if len(self.token) > 12 else f"completion token {self.token}"

    def request(self) -> Request:
        """Ask for the token's status."""
        return Request("/completion_status", {"token": self.token, **({"checkpoint": "true"} if self.checkpoint else {})})

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        if answer.get("status") == "complete":
            found = {"status": "complete", "step": answer.get("step"), "durable": answer.get("durable")}
            return Verdict(Outcome.REACHED, "complete", found)
        return _pending(seen, "the token's input is still in progress")


def _figures(metrics: Mapping[str, Any]) -> dict[str, Any]:
    names = ("total_input_records", "total_processed_records", "total_completed_records", "total_completed_steps")
    return {name: metrics.get(name) for name in names}


@dataclass(frozen=True)
class IdleCondition(_RuntimeCondition):
    """No record came in for ``idle_interval_s`` seconds and every record that ever came in is processed."""

    kind = "idle"
    idle_interval_s: float = 5.0

    @property
    def goal(self) -> str:
        """Idleness and its length."""
        return f"{self.idle_interval_s:g} s of idleness"

    def request(self) -> Request:
        """Ask for the counters."""
        return Request("/stats")

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        metrics = answer["global_metrics"]
        received, processed = metrics["total_input_records"], metrics["total_processed_records"]
        note = f"{processed} of {received} records processed"
        if received != processed:
            return _pending(seen, note)
        # Counters only grow within an incarnation: finding the same ones means that nothing came in between, however long nobody
        # looked.
        now = {"incarnation": metrics.get("incarnation_uuid"), "records": received, "since": seen.at}
        if memory and memory["incarnation"] == now["incarnation"] and memory["records"] == received:
            now["since"] = memory["since"]
        quiet = seen.at - float(now["since"])
        if quiet >= self.idle_interval_s:
            return Verdict(Outcome.REACHED, note, _figures(metrics), now)
        return _pending(seen, f"{note}, idle for {quiet:.1f} s", now)


@dataclass(frozen=True)
class CompletionCondition(_RuntimeCondition):
    """Every input connector reached the end of its input and all of it is processed and delivered."""

    kind = "completion"

    @property
    def goal(self) -> str:
        """Completion."""
        return "the end of all inputs"

    def request(self) -> Request:
        """Ask for the counters."""
        return Request("/stats")

    def _judge_answer(self, seen: Observation, answer: Mapping[str, Any], memory: Mapping[str, Any] | None) -> Verdict:
        metrics = answer["global_metrics"]
        if metrics["pipeline_complete"]:
            return Verdict(Outcome.REACHED, "complete", _figures(metrics))
        return _pending(seen, f"{metrics['total_completed_records']} of {metrics['total_input_records']} records completed")
