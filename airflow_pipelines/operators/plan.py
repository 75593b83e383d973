"""The operator that plans a change of a running pipeline's program, without a stop."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_pipelines.contract.change_text import change_markdown, change_text, diff_text
from airflow_pipelines.contract.descriptors import PendingChange
from airflow_pipelines.hooks.conditions import StartedCondition
from airflow_pipelines.hooks.pipeline import PipelineHook
from airflow_pipelines.links.pipeline import PipelineChangeLink, PipelineLink
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.base import PipelineOperator
from airflow_pipelines.operators.diff import change_wire, change_xcom, changes_something
from airflow_pipelines.operators.modification import PROGRAM_FIELDS, Modification, check_program_arguments
from airflow_pipelines.operators.stream_program import kept_from_templates, read_stream_program
from airflow_pipelines.sdk.approval import NOT_GIVEN
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelineFailedError
from airflow_pipelines.sdk.stream_collecting import StreamProgramArguments, StreamProgramSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.sdk import Context

UP = ("RUNNING", "PAUSED")
_CHECKPOINT_S: Final = 120.0


class PlanPipelineOperator(PipelineOperator):
    """The operator that plans the change of a running pipeline's program, while the pipeline continues.

    It shows the SQL of both sides, the views to re-evaluate with the number of rows and an estimate of the seconds, and the state
    that is dropped. The pipeline is neither stopped nor held up, and nothing is changed.

    A program that does not compile, or with which the pipeline could not continue, fails the task.

    XCom: ``{"pipeline", "changes", "diff", "diff_text", "programs", "views_evaluated_anew", "plan", "text", "markdown"}``.
    ``changes`` is False if only comments and layout differ. ``programs`` is the value that ApprovePipelineOperator expects after
    the pipeline was stopped, modified and started. ``text`` and ``markdown`` are the whole plan in readable form.

    :param sql: the program's text, or the path of a ``.sql`` file; None for that of the program that runs
    :param udf_python: the text of the Python module with the program's functions; None for that of the program that runs
    :param stream_program: see ModifyPipelineOperator
    :param stream_files: see ModifyPipelineOperator
    :param stream_arguments: see ModifyPipelineOperator
    :param expected_programs: the ``programs`` of an earlier plan: the task fails if they differ by now, before anything is stopped
        for a change that was approved for them
    :param skip_unchanged: True to skip this task, and so the tasks after it, if ``changes`` would be False
    :param timeout: seconds to wait for a pipeline that is still starting
    """

    operator_extra_links = (PipelineLink(), PipelineChangeLink())
    template_fields: Sequence[str] = (
        *PipelineOperator.template_fields,
        "sql",
        "udf_python",
        "stream_program",
        "stream_files",
        "stream_arguments",
        "expected_programs",
    )
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers = {"sql": "sql", "udf_python": "py", "expected_programs": "json"}

    def __init__(
        self,
        *,
        sql: str | None = None,
        udf_python: str | None = None,
        stream_program: StreamProgramSource | None = None,
        stream_files: Sequence[str] = (),
        stream_arguments: Sequence[str] | None = None,
        expected_programs: Any = NOT_GIVEN,
        skip_unchanged: bool = False,
        timeout: float = 600.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.given = arguments.collect_given(
            sql=sql, udf_python=udf_python or None, stream_program=stream_program, stream_arguments=stream_arguments
        )
        self.sql = sql
        self.udf_python = udf_python
        self.stream_program = kept_from_templates(stream_program)
        self.stream_files = stream_files
        self.stream_arguments = stream_arguments
        # Template fields must be values that Airflow can store, so a separate flag says that it was given.
        self.expects_programs = expected_programs is not NOT_GIVEN
        self.expected_programs = expected_programs if self.expects_programs else None
        self.skip_unchanged = skip_unchanged
        self.timeout = timeout

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        check_program_arguments(self)
        if self.expects_programs:
            self.expected_programs = arguments.mapping("expected_programs", self.expected_programs)
            if not self.expected_programs:
                raise AirflowFailException("expected_programs is empty: give it the 'programs' that an earlier plan returned")

    @cached_property
    def streams(self) -> StreamProgramArguments:
        """The stream program, read on first use.

        :raises StreamFilesError: when a file is missing or cannot be used
        """
        return read_stream_program(self.stream_program, self.stream_files, self.stream_arguments, self.get_dag())

    def act(self, context: Context) -> dict[str, Any]:
        """Plan the change."""
        self.hook.wait(self.pipeline_name, StartedCondition(UP), timeout_s=self.timeout, poll_interval_s=1.0)
        descriptor = running_descriptor(self.hook, self.pipeline_name)
        modification = Modification(self.sql, self.udf_python, self.streams)
        change = planned_change(self.hook, descriptor, modification)
        self.log.info("On pipeline %s this would change:\n%s", self.pipeline_name, change_text(change))
        check_accepted(self.pipeline_name, change)
        if self.expects_programs and not same_programs(change.programs, self.expected_programs or {}):
            raise AirflowFailException(
                f"The plan for pipeline {self.pipeline_name!r} is not the expected one, so nothing should be stopped for it: "
                f"{moved_text(self.expected_programs or {}, change.programs)}"
            )
        changes = changes_something(change)
        if not changes and self.skip_unchanged:
            text = f"The program of pipeline {self.pipeline_name!r} is as it should be: this task is skipped"
            self.log.info(text)
            raise AirflowSkipException(text)
        return {
            "pipeline": self.pipeline_name,
            "changes": changes,
            "diff_text": diff_text(change.diff),
            **change_xcom(change),
            "plan": change_wire(change)["plan"],
            "text": change_text(change),
            "markdown": change_markdown(change),
        }


def running_descriptor(hook: PipelineHook, name: str) -> dict[str, Any]:
    """Return a pipeline with all fields, as the service sends it.

    :param hook: the hook
    :param name: the pipeline's name
    :raises PipelineFailedError: if there is no such pipeline
    """
    descriptor = hook.descriptor(name, "all")
    if descriptor is None:
        raise PipelineFailedError(f"There is no pipeline {name!r}: deploy and start it first", None)
    return descriptor


def planned_change(hook: PipelineHook, descriptor: Mapping[str, Any], modification: Modification) -> PendingChange:
    """Return the change that the program of a modification would make in a running pipeline.

    :param hook: the hook
    :param descriptor: the pipeline as the service sends it, with all fields
    :param modification: the modification
    :raises ProgramCompilationError: if the program does not compile
    """
    likeness = modification.compare(descriptor, hook)
    name = str(descriptor["name"])
    if descriptor.get("stream_files") and not hook.newest_checkpoint(name):
        # The state of a stream program's functions is described with its first checkpoint.
        with suppress(PipelineAPIError, PipelineFailedError):
            hook.checkpoint(name, timeout_s=_CHECKPOINT_S)
    # The same text as for the stopped pipeline, including comments, because the plan identifies the program by its whole text.
    stopped = {**descriptor, "deployment_status": "Stopped", "deployment_desired_status": "Stopped"}
    changes = modification.changes(stopped, likeness)
    return hook.plan(name, {field: changes[field] for field in PROGRAM_FIELDS if field in changes})


def check_accepted(pipeline: str, change: PendingChange) -> None:
    """Check that a pipeline could continue with a change.

    :param pipeline: the pipeline's name
    :param change: the change
    :raises AirflowFailException: if the change is refused
    """
    refusals = () if change.plan is None else change.plan.refusals
    if refusals:
        raise AirflowFailException(
            f"Pipeline {pipeline!r} cannot go on with this program, and was left as it is: "
            + "; ".join(refusal.message for refusal in refusals)
        )


def same_programs(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if two changes are between the same programs. A version that one of them does not know is not compared.

    :param one: the ``programs`` of a change
    :param other: those of another
    """
    return all(_is_same(one.get(which), other.get(which)) for which in ("saved", "new"))


def moved_text(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the difference between the programs of two changes, as the end of a sentence.

    :param before: the ``programs`` of the change that was shown
    :param now: those of the current change
    """
    names = {"saved": "the program that the pipeline runs", "new": "the new program"}
    moved = [
        f"{text} is {_describe_version(now.get(which))} now and was {_describe_version(before.get(which))}"
        for which, text in names.items()
        if not _is_same(before.get(which), now.get(which))
    ]
    return "; ".join(moved) or "both programs are the same, and what the change does to the pipeline is not"


def _is_same(one: Any, other: Any) -> bool:
    if not one or not other or one.get("hash") != other.get("hash"):
        return False
    versions = {program["version"] for program in (one, other) if program.get("version") is not None}
    return len(versions) < 2


def _describe_version(program: Any) -> str:
    if not program:
        return "unknown"
    version = f"version {program['version']}, " if program.get("version") is not None else ""
    return f"{version}hash {str(program.get('hash'))[:12]}..."
