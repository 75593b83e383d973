"""The deployment of a wanted program: brings its pipeline up once a person has agreed to the changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from airflow_pipelines.contract.change_text import change_text
from airflow_pipelines.contract.descriptors import PendingChange
from airflow_pipelines.contract.enums import BootstrapPolicy, PipelineStatus, ProgramStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.running.wanted import Wanted, former_values
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelinesError, refused_program
from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
from airflow_pipelines.sdk.runtime_config import RuntimeConfig
from airflow_pipelines.sdk.wire import path_of

_PROGRAM = ("stream_files", "stream_arguments", "program_code")
_PHASES: Mapping[PipelineStatus, str] = {
    PipelineStatus.PROVISIONING: "a host for it comes up",
    PipelineStatus.INITIALIZING: "its program and its state are opened",
    PipelineStatus.SYNCHRONIZING: "its checkpoint is fetched from the object store",
    PipelineStatus.BOOTSTRAPPING: "what is new in its program is evaluated",
    PipelineStatus.REPLAYING: "its journal is replayed",
    PipelineStatus.SUSPENDED: "its checkpoint is written",
    PipelineStatus.STOPPING: "its host ends",
}
"""The phases in which a pipeline comes up or goes down, by its status."""


class Person(Protocol):
    """The person who is informed of progress and decides about changes."""

    def tell(self, text: str) -> None:
        """Report progress.

        :param text: a sentence
        """

    def wait(self, text: str, describe: Callable[[], str]) -> AbstractContextManager[None]:
        """Report the begin of something that takes long, and from time to time that it goes on while the context lasts.

        :param text: a sentence
        :param describe: the function that says what happens at the moment, in a few words; empty for nothing in particular
        :returns: the context
        """

    def approves(self, change: str, question: str) -> bool:
        """Show a change and ask for approval.

        :param change: the changes, in several lines
        :param question: the question
        """


class ChangeDeclined(PipelinesError):
    """The error of a change that nobody approved. The pipeline is as it was."""


@dataclass(frozen=True, slots=True)
class PreparedPipeline:
    """A pipeline that can be changed and started, or that already runs as wanted.

    :param pipeline: the pipeline
    :param agreed: the programs of the change that was approved while the pipeline was up; None if nobody was asked
    """

    pipeline: Pipeline
    agreed: Mapping[str, Any] | None = None

    def is_agreed(self, change: PendingChange) -> bool:
        """Return True if a change is the one that was approved.

        :param change: the change that the pipeline waits with
        """
        return self.agreed is not None and _hashes(change.programs) == _hashes(self.agreed)


@dataclass(frozen=True, slots=True)
class Deploying:
    """The steps that bring one pipeline up.

    :param client: the client to reach the service with
    :param wanted: the pipeline as it should be
    :param person: the person who decides about changes
    :param timeout_s: the maximum number of seconds to wait for each step; None waits without limit
    """

    client: PipelineClient
    wanted: Wanted
    person: Person
    timeout_s: float | None = None

    def prepare(self) -> PreparedPipeline:
        """Create the pipeline, or stop an existing one that is up and has to change. Nothing is started.

        :raises ChangeDeclined: when the change of a pipeline that is up was not approved
        :raises ProgramCompilationError: when the program does not compile
        :raises PipelinesError: when the service refuses something
        """
        descriptor = self._descriptor()
        if descriptor is None:
            return PreparedPipeline(self._create())
        pipeline = Pipeline.get(self.wanted.name, self.client)
        changes = self.wanted.changes(descriptor)
        if changes and descriptor["deployment_desired_status"] != "Stopped":
            return PreparedPipeline(pipeline, self._agree_while_up(pipeline, changes))
        return PreparedPipeline(pipeline)

    def bring_up(self, prepared: PreparedPipeline) -> None:
        """Apply the differences, start the pipeline, and ask for approval of changes of its stored state.

        :param prepared: the result of :meth:`prepare`
        :raises ChangeDeclined: when a change was not approved; the changes are reverted then
        :raises PipelineFailedError: when the pipeline does not come up
        :raises PipelinesError: when the service refuses something
        """
        pipeline = prepared.pipeline
        descriptor = self._descriptor()
        if descriptor is None:
            raise PipelinesError(f"pipeline {self.wanted.name!r} was deleted by somebody else")
        changes = self.wanted.changes(descriptor)
        if not changes and descriptor["deployment_desired_status"] != "Stopped":
            self._attach(pipeline)
            return
        if changes:
            self._modify(changes)
            self.person.tell(f"Pipeline {self.wanted.name!r} was changed: {_join_names(changes)}")
        elif ProgramStatus.from_value(descriptor["program_status"]) == ProgramStatus.SystemError:
            # The program may be valid and the compiler unavailable; setting the program again compiles it again.
            self._modify({"stream_files": dict(self.wanted.stream_files)})
            self.person.tell(f"The program of pipeline {self.wanted.name!r} is compiled again")
        with self._wait("Starting"):
            pipeline.start(bootstrap_policy=BootstrapPolicy.AWAIT_APPROVAL, timeout_s=self.timeout_s)
        change = pipeline.pending_change()
        if change is None:
            return
        if prepared.is_agreed(change):
            self._approve(pipeline, change)
        else:
            self._decide(pipeline, change, former_values(changes, descriptor))

    def _create(self) -> Pipeline:
        wanted = self.wanted
        config = RuntimeConfig.from_dict(wanted.runtime_config) if wanted.runtime_config else RuntimeConfig.default()
        builder = PipelineBuilder(
            self.client,
            wanted.name,
            wanted.sql or "",
            runtime_config=config,
            stream_program=wanted.stream_files,
            stream_arguments=wanted.stream_arguments,
        )
        with self._wait("Creating"):
            return builder.create(timeout_s=self.timeout_s)

    def _wait(self, verb: str, ending: str = "") -> AbstractContextManager[None]:
        return self.person.wait(f"{verb} pipeline {self.wanted.name!r}{ending}", self._describe_phase)

    def _describe_phase(self) -> str:
        """Return what happens to the pipeline at the moment."""
        try:
            descriptor = self.client.get(path_of("pipelines", self.wanted.name), params={"selector": "status"})
        except PipelinesError:
            return ""  # whoever waits hears of it
        if ProgramStatus.from_value(descriptor["program_status"]) != ProgramStatus.Success:
            return "its program is compiled"
        return _PHASES.get(PipelineStatus.from_str(descriptor["deployment_status"]), "")

    def _agree_while_up(self, pipeline: Pipeline, changes: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Show the changes while the pipeline keeps running, and stop it once they are approved.

        :returns: the programs of the change that was shown; None if they could not be determined
        """
        plan = None
        program = {name: changes[name] for name in _PROGRAM if name in changes}
        shown = f"changed: {_join_names(changes)}"
        if program and pipeline.status() in (PipelineStatus.RUNNING, PipelineStatus.PAUSED):
            plan = self._plan(program)
            shown = f"{shown}\n{change_text(plan)}"
            if plan.plan is not None and plan.plan.refusals:
                self.person.tell(shown)
                raise PipelinesError(
                    f"pipeline {self.wanted.name!r} cannot go on with this program, and was left as it is: "
                    + "; ".join(refusal.message for refusal in plan.plan.refusals)
                )
        if not self.person.approves(shown, f"Stop pipeline {self.wanted.name!r} with a checkpoint, and go on with this?"):
            raise ChangeDeclined(f"the change was not approved: pipeline {self.wanted.name!r} goes on as it is")
        with self._wait("Stopping", " with a checkpoint"):
            pipeline.stop(force=False, timeout_s=self.timeout_s)
        return None if plan is None else plan.programs

    def _attach(self, pipeline: Pipeline) -> None:
        if pipeline.status() is PipelineStatus.PAUSED:
            self.person.tell(f"Pipeline {self.wanted.name!r} is paused and goes on")
            pipeline.resume(timeout_s=self.timeout_s)
            return
        self.person.tell(f"Pipeline {self.wanted.name!r} is up already, with this program")
        change = pipeline.pending_change()
        if change is None:
            pipeline.wait_for_status(PipelineStatus.RUNNING, self.timeout_s)
        else:
            self._decide(pipeline, change, {})

    def _decide(self, pipeline: Pipeline, change: PendingChange, former: Mapping[str, Any]) -> None:
        """Ask for approval of the change that the pipeline waits with; if it is declined, restore the former state."""
        if self.person.approves(change_text(change), f"Let pipeline {self.wanted.name!r} go on with this?"):
            self._approve(pipeline, change)
            return
        # The stored state is unchanged: a pipeline that waits for approval has not touched it.
        pipeline.stop(force=False, timeout_s=self.timeout_s)
        if former:
            self._modify(former)
        raise ChangeDeclined(f"the change was not approved: pipeline {self.wanted.name!r} is stopped and has its former program")

    def _approve(self, pipeline: Pipeline, change: PendingChange) -> None:
        pipeline.approve(expected_programs=change.programs)
        with self._wait("Going on with the change of"):
            pipeline.wait_for_status(PipelineStatus.RUNNING, self.timeout_s)

    def _modify(self, fields: Mapping[str, Any]) -> None:
        try:
            path = path_of("pipelines", self.wanted.name)
            self.client.patch(path, json=dict(fields), params={"allow_compile_errors": False}, idempotent=True)
        except PipelineAPIError as error:
            raise refused_program(error, self.wanted.name) from error

    def _plan(self, program: Mapping[str, Any]) -> PendingChange:
        try:
            answer = self.client.post(path_of("pipelines", self.wanted.name, "plan"), json=dict(program), idempotent=True)
        except PipelineAPIError as error:
            raise refused_program(error, self.wanted.name) from error
        return PendingChange.from_dict(answer)

    def _descriptor(self) -> dict[str, Any] | None:
        try:
            descriptor: dict[str, Any] = self.client.get(path_of("pipelines", self.wanted.name), params={"selector": "all"})
        except PipelineAPIError as error:
            if error.error_code == ErrorCode.UNKNOWN_PIPELINE_NAME:
                return None
            raise
        return descriptor


def _join_names(changes: Mapping[str, Any]) -> str:
    return ", ".join(name.replace("_", " ") for name in changes)


def _hashes(programs: Mapping[str, Any]) -> dict[str, str]:
    """Return the hashes of the programs. Versions are left out: a program has one only once it is stored."""
    return {which: program["hash"] for which, program in programs.items()}
