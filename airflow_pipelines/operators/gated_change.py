"""The execution of an approved change of a running pipeline: stop with a checkpoint, modify, start, approve; or roll back.

Each step reads the state of the pipeline from the service, and takes the next action. So a task that was interrupted anywhere
continues from there, and a task that finds the pipeline in a state that nobody approved fails and names the difference.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final, NoReturn, Self

from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.contract.change_text import change_text
from airflow_pipelines.contract.descriptors import PendingChange
from airflow_pipelines.contract.enums import BootstrapPolicy, PipelineStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.hooks.conditions import (
    Condition,
    Observation,
    StartedCondition,
    StoppedCondition,
    describe_deployment_error,
    is_transient,
)
from airflow_pipelines.operators.modification import Modification
from airflow_pipelines.operators.plan import UP, moved_text, planned_change, running_descriptor, same_programs
from airflow_pipelines.operators.task_memory import TaskMemory
from airflow_pipelines.operators.waiting import WaitingTask, reached_or_deferred
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelineFailedError, ProgramCompilationError
from airflow_pipelines.sdk.likeness import Likeness

APPROVAL: Final = "approval"
"""The key of the approval in the task's memory."""
_FORMER: Final = "former"
_STOPPED: Final = StoppedCondition()
_STARTED: Final = StartedCondition((*UP, PipelineStatus.AWAITINGAPPROVAL.name))
_RUNS: Final = StartedCondition(UP)
_PATIENCE_S: Final = 20.0
"""The seconds to wait in the worker before a deferral: the pipeline is down meanwhile, and a deferral takes seconds."""
_log = logging.getLogger(__name__)


class ChangeStage(StrEnum):
    """The stages of an approved change, as far as the service cannot tell them."""

    APPROVED = "approved"
    """The stage in which the pipeline was not touched."""
    STOPPING = "stopping"
    """The stage after this task asked the pipeline to stop: it has to start a pipeline that is stopped."""
    TAKING_BACK = "taking back"
    """The stage after the change was refused: the pipeline gets its former program back."""


@dataclass(frozen=True, slots=True)
class ApprovedChange:
    """The change that a person was shown, and its progress. It has JSON values only, because it travels between processes.

    :param shown: the change, as :func:`~airflow_pipelines.operators.diff.change_xcom` returns it
    :param changed: the names of the fields that change
    :param version: the version of the pipeline for which it was shown
    :param wanted: the fingerprint of the modification for which it was shown
    :param decided_by: the person who approved it; None if nobody did and the time was up
    :param stage: the stage of the change
    :param initial: the state of the pipeline before it was stopped: ``running`` or ``paused``
    :param stopped_at: the time when it was asked to stop, in seconds since the epoch
    :param refusal: the reason for the rollback
    """

    shown: dict[str, Any]
    changed: list[str]
    version: int
    wanted: str
    decided_by: str | None = None
    stage: str = ChangeStage.APPROVED.value
    initial: str = "running"
    stopped_at: float | None = None
    refusal: str = ""

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Self:
        """Return the change that :meth:`to_wire` serialised."""
        return cls(**wire)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object of the change."""
        return asdict(self)

    @property
    def programs(self) -> dict[str, Any]:
        """The hash and version of the program that ran and of the new one."""
        return dict(self.shown["programs"] or {})

    def shows(self, change: PendingChange) -> bool:
        """Return True if a change is the one that was shown. Numbers of rows may differ, because the pipeline continued."""
        same = (change.diff, change.views_evaluated_anew) == (self.shown["diff"], self.shown["views_evaluated_anew"])
        return same and same_programs(change.programs, self.programs)


class GatedChange:
    """The execution of an approved change.

    :param task: the task that makes the change, and that waits
    :param modification: the modification to apply
    :param approved: the approved change
    :param memory: the task's memory
    :param method_name: the method in which a deferred task continues; it gets ``approved``
    :param compile_timeout: seconds to wait for the compiler
    """

    def __init__(
        self,
        task: WaitingTask,
        modification: Modification,
        approved: ApprovedChange,
        memory: TaskMemory,
        *,
        method_name: str,
        compile_timeout: float,
    ) -> None:
        self._task = task
        self._hook = task.hook
        self._name = task.pipeline_name
        self._modification = modification
        self._memory = memory
        self._method_name = method_name
        self._compile_timeout = compile_timeout
        self.approved = approved
        """The approved change, and its progress."""

    def advance(self) -> dict[str, Any]:
        """Continue from the current state of the change, until the pipeline runs with it.

        :returns: the result of the last wait
        :raises TaskDeferred: if the task has to wait
        :raises AirflowFailException: if the change was not made; the message has the reason and the state of the pipeline
        """
        if self.approved.stage == ChangeStage.TAKING_BACK:
            self._take_back(self.approved.refusal)
        if self._modification.fingerprint != self.approved.wanted:
            self._refuse("the task wants something else than it showed: a template or the DAG's file has changed")
        descriptor = self._descriptor()
        if not self._is_new(descriptor):
            descriptor = self._stop_unless_changed(descriptor)
            self._modify(descriptor)
        return self._start_and_approve()

    def failure(self, error: Exception) -> AirflowFailException:
        """Return the error for a wait that failed after the pipeline was stopped: it may be down, and nobody else starts it.

        :param error: the error of the wait
        """
        status = self._hook.status(self._name).name
        return AirflowFailException(
            f"{error}\nThis task had stopped pipeline {self._name!r} for the approved change; it is {status} now. Its last "
            "checkpoint is kept. Put right what the error says and clear this task, which then goes on with the approved change; "
            "or modify the pipeline back and start it"
        )

    # The pipeline has the program that it had.

    def _stop_unless_changed(self, descriptor: dict[str, Any]) -> dict[str, Any]:
        """Stop the pipeline, if it has not changed since its change was shown.

        :returns: its descriptor after that
        """
        self._check_version(descriptor)
        seen = Observation(descriptor, time.time())
        if self.approved.stage == ChangeStage.APPROVED:
            if seen.status.name not in UP:
                raise self._make_refusal(f"it is {seen.status.name} now, and was up when the change was shown")
            self._check_plan(descriptor)
            stopped_at, initial = time.time(), "paused" if seen.status is PipelineStatus.PAUSED else "running"
            # The former program of an earlier change in the same task does not belong to this one.
            self._memory.forget(_FORMER)
            # Stored before the request: from here on this task has to start a stopped pipeline again.
            self._remember(stage=ChangeStage.STOPPING.value, stopped_at=stopped_at, initial=initial)
        if seen.descriptor is not None and seen.descriptor["deployment_desired_status"] != "Stopped":
            _log.info("The change is approved: stopping pipeline %s with a checkpoint", self._name)
            self._hook.stop(self._name)
        self._wait(_STOPPED)
        descriptor = self._descriptor()
        self._check_version(descriptor)
        error = descriptor.get("deployment_error")
        if error:
            self._take_back(f"it stopped with an error: {describe_deployment_error(error)}")
        return descriptor

    def _check_version(self, descriptor: Mapping[str, Any]) -> None:
        if descriptor["version"] != self.approved.version:
            raise self._make_refusal(
                f"somebody changed it: it is version {descriptor['version']} now, and was version {self.approved.version} when "
                "the change was shown"
            )

    def _check_plan(self, descriptor: Mapping[str, Any]) -> None:
        change = planned_change(self._hook, descriptor, self._modification)
        if not self.approved.shows(change):
            raise self._make_refusal(
                f"{moved_text(self.approved.programs, change.programs)}. The change is by now:\n{change_text(change)}"
            )

    def _modify(self, descriptor: Mapping[str, Any]) -> None:
        likeness = self._modification.compare(descriptor, self._hook)
        changes = self._modification.changes(descriptor, likeness)
        self._memory.remember(_FORMER, {name: self._field(descriptor, name) for name in changes})
        with self._take_back_on_refusal():
            self._hook.modify(self._name, changes)
        _log.info("Pipeline %s changed in %s", self._name, ", ".join(sorted(changes)))

    # The pipeline has the new program.

    def _start_and_approve(self) -> dict[str, Any]:
        """Start the pipeline with the new program, and approve the change."""
        descriptor = self._descriptor()
        if descriptor["deployment_desired_status"] == "Stopped":
            if self.approved.stage == ChangeStage.APPROVED:
                raise self._make_refusal("somebody made this change and stopped it. Start it with StartPipelineOperator")
            _log.info("Starting pipeline %s with the new program", self._name)
            self._wait(_STOPPED)
            with self._take_back_on_refusal():
                self._compile(descriptor)
                self._start()
        try:
            outcome = self._wait(_STARTED)
            if outcome["status"] == PipelineStatus.AWAITINGAPPROVAL.name:
                self._check_waiting()
            # The service compares the programs, also if no change is pending, because another program may run by now.
            self._approve()
            return self._wait(_RUNS)
        except PipelineFailedError as error:
            raise self.failure(error) from error

    def _compile(self, descriptor: Mapping[str, Any]) -> None:
        self._hook.wait_until_compiled(self._name, int(descriptor["program_version"]), timeout_s=self._compile_timeout)

    def _start(self) -> None:
        self._hook.start(self._name, initial=self.approved.initial, bootstrap_policy=BootstrapPolicy.AWAIT_APPROVAL)

    def _check_waiting(self) -> None:
        """Check that the pending change is the one that was shown; otherwise give the pipeline its former program back."""
        change = self._hook.pending_change(self._name)
        if self.approved.shows(change):
            return
        self._refuse(f"{moved_text(self.approved.programs, change.programs)}. It waits with:\n{change_text(change)}")

    def _approve(self) -> None:
        try:
            self._hook.approve(self._name, self.approved.programs)
        except PipelineAPIError as error:
            if error.error_code != ErrorCode.UNEXPECTED_PROGRAM:
                raise
            raise self._make_refusal(str(error)) from error

    # The rollback.

    def _refuse(self, why: str) -> NoReturn:
        """Raise the refusal. A pipeline that this task has stopped gets its former program back first.

        :raises AirflowFailException: always
        """
        if self.approved.stage == ChangeStage.APPROVED:
            raise self._make_refusal(why)
        self._take_back(why)

    @contextmanager
    def _take_back_on_refusal(self) -> Iterator[None]:
        """Roll the change back if the service refuses a step of it."""
        try:
            yield
        except (ProgramCompilationError, PipelineAPIError) as error:
            if is_transient(error):
                raise
            self._take_back(str(error))

    def _take_back(self, why: str) -> NoReturn:
        """Give the pipeline its former program back, start it, and fail. It can be interrupted and called again.

        :raises AirflowFailException: always
        """
        self._remember(stage=ChangeStage.TAKING_BACK.value, refusal=why)
        former = self._memory.recall(_FORMER)
        descriptor = self._descriptor()
        changed = not self._has_former(descriptor, former or {})
        # The change itself adds one version, and its rollback adds another.
        latest = self.approved.version + (0 if former is None else 2)
        if not self.approved.version <= descriptor["version"] <= latest:
            raise self._make_refusal(f"{why}. Besides, somebody changed it, or what it was is not known any more")
        if changed and descriptor["deployment_desired_status"] != "Stopped":
            # A pipeline that waits for approval has not changed its storage.
            self._hook.stop(self._name)
        if changed:
            self._wait_here(_STOPPED)
            self._hook.modify(self._name, former)
            descriptor = self._descriptor()
        if descriptor["deployment_desired_status"] == "Stopped":
            self._compile(descriptor)
            self._wait_here(_STOPPED)
            self._start()
        outcome = self._wait_here(_RUNS)
        self._memory.forget(APPROVAL)
        raise AirflowFailException(
            f"The approved change of pipeline {self._name!r} was not made: {why}\nThe pipeline has its former program and is "
            f"{outcome['status']}"
        )

    # Helpers.

    def _descriptor(self) -> dict[str, Any]:
        return running_descriptor(self._hook, self._name)

    def _is_new(self, descriptor: Mapping[str, Any]) -> bool:
        """Return True if the pipeline has the modification. Its description may differ, because it can be changed at any time."""
        likeness = self._modification.compare(descriptor, self._hook)
        return all(degree is not Likeness.DIFFERENT for name, degree in likeness.items() if name != "description")

    def _has_former(self, descriptor: Mapping[str, Any], former: Mapping[str, Any]) -> bool:
        """Return True if the pipeline has its former fields."""
        return all(value == self._field(descriptor, name) for name, value in former.items())

    def _field(self, descriptor: Mapping[str, Any], name: str) -> Any:
        """Return a field of the pipeline, in the form in which it can be sent."""
        if name == "udf_python":
            return self._hook.udf_python(self._name)
        # A pipeline without a stream program has no such fields.
        without: dict[str, Any] = {"stream_files": {}, "stream_arguments": []}
        return descriptor.get(name, without.get(name))

    def _remember(self, **fields: Any) -> None:
        self.approved = replace(self.approved, **fields)
        self._memory.remember(APPROVAL, self.approved.to_wire())

    def _wait(self, condition: Condition) -> dict[str, Any]:
        kwargs = {"approved": self.approved.to_wire()}
        return reached_or_deferred(self._task, condition, method_name=self._method_name, kwargs=kwargs, patience_s=_PATIENCE_S)

    def _wait_here(self, condition: Condition) -> dict[str, Any]:
        return self._hook.wait(self._name, condition, timeout_s=self._task.timeout, poll_interval_s=self._task.poke_interval)

    def _make_refusal(self, why: str) -> AirflowFailException:
        # After the task is cleared, a person is asked about the change of that time.
        self._memory.forget(APPROVAL)
        status = self._hook.status(self._name).name
        cure = ""
        if status in (PipelineStatus.STOPPED.name, PipelineStatus.STOPPING.name) and self.approved.stage != ChangeStage.APPROVED:
            cure = " because this task had stopped it for the change: start it with StartPipelineOperator"
        return AirflowFailException(
            f"The approved change was not made, because pipeline {self._name!r} moved since it was shown: {why}. It is {status} "
            f"now{cure}"
        )
