"""The operator that changes a running pipeline after a person has seen the change and agreed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.exceptions import HITLTimeoutError
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskAwaitingInput

from airflow_pipelines.contract.change_text import change_markdown, change_text, diff_text
from airflow_pipelines.contract.descriptors import PendingChange
from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.hooks.conditions import StartedCondition
from airflow_pipelines.hooks.configuration import is_deferrable
from airflow_pipelines.hooks.pipeline import DEFAULT_CONN_ID, PipelineHook
from airflow_pipelines.links.pipeline import PipelineChangeLink, PipelineLink
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.base import airflow_errors
from airflow_pipelines.operators.dag_test import await_answer, end_task_of_dag_test
from airflow_pipelines.operators.diff import change_fingerprint, change_xcom, changes_something, review_xcom
from airflow_pipelines.operators.gated_change import APPROVAL, ApprovedChange, GatedChange
from airflow_pipelines.operators.modification import Modification, check_program_arguments, config_changes
from airflow_pipelines.operators.object_store import with_object_store
from airflow_pipelines.operators.plan import UP, check_accepted, planned_change, running_descriptor
from airflow_pipelines.operators.request import REVIEW_KEY, Answer, check_request, write_request
from airflow_pipelines.operators.stream_program import kept_from_templates, read_stream_program
from airflow_pipelines.operators.task_memory import TaskMemory
from airflow_pipelines.operators.template_files import TemplateFilesByUrl
from airflow_pipelines.sdk.errors import PipelineFailedError
from airflow_pipelines.sdk.likeness import Likeness
from airflow_pipelines.sdk.stream_collecting import StreamProgramArguments, StreamProgramSource
from airflow_pipelines.triggers.pipeline import result_of

if TYPE_CHECKING:
    from airflow.sdk import Context

_ON_REJECT = ("keep", "fail")
_ON_TIMEOUT = ("keep", "approve", "reject")
_SETTLED = StartedCondition((*UP, PipelineStatus.AWAITINGAPPROVAL.name))


class GatedModifyOperator(TemplateFilesByUrl, ApprovalOperator):  # type: ignore[misc,unused-ignore]
    """The operator that changes a running pipeline's program or configuration, after a person has approved exactly this change.

    The pipeline continues until then: it is down for the restart only, and not while the person decides.

    The task plans the change while the pipeline runs and shows it in Airflow's Required Actions: the SQL of both sides, the views
    to re-evaluate, with the number of entries in storage and an estimate of the seconds, and the state that is dropped. Once the
    change is approved, and if the pipeline has not changed meanwhile, the task stops the pipeline with a checkpoint, modifies it,
    starts it, and approves the change on it.

    Nobody is asked if that is not needed. A pipeline that is up to date is left alone, and so is one whose program differs in
    comments and layout only. A description is changed at once.

    If the pipeline has changed meanwhile, the task fails and names the difference. If the stopped pipeline cannot take the new
    program, or waits with another change than the one that was shown, it gets its former program back and continues. A task that is
    interrupted (its worker is lost) continues where it was when it is retried, with the approval that was given; it has three
    retries unless the DAG sets another number. A cleared task that was interrupted continues too; for a new request, start a new
    DAG run.

    The state of the task shows the decision: it succeeds if the change was made, is skipped if it was rejected, and fails if nobody
    answered in time.

    XCom: ``{"pipeline", "decision", "decided_by", "changed", "status", "version", "program_version", "outage_s", "diff",
    "diff_text", "programs", "views_evaluated_anew"}``. ``decision`` is ``approved`` or ``not_needed``; ``changed`` lists the fields
    that were changed. If a change was not made, the XCom ``decision`` has ``rejected`` or ``timed_out``.

    :param pipeline_name: the pipeline
    :param pipeline_conn_id: the Airflow connection
    :param sql: the program's text, or the path of a ``.sql`` file; this and the next ones are those of ModifyPipelineOperator
    :param udf_python: the text of the Python module with the program's functions
    :param stream_program: the stream program
    :param stream_files: other files that the stream program needs
    :param stream_arguments: the stream program's command line
    :param description: a description
    :param runtime_config: the values to change of the runtime configuration, in wire form
    :param secret_conn_ids: Airflow connections that the program or the configuration names
    :param object_store_conn_id: the Airflow connection of the object store that checkpoints are copied to
    :param compile_timeout: seconds to wait for the compiler
    :param on_reject: ``keep`` leaves the pipeline as it is and skips the task and the tasks after it; ``fail`` leaves the
        pipeline as it is and fails the task
    :param on_timeout: the action if nobody has answered within ``response_timeout``: ``keep`` leaves the pipeline as it is and
        fails the task; ``reject`` and ``approve`` act as if somebody had answered so
    :param deferrable: True to wait for the pipeline in the triggerer if it takes long; default ``[operators] default_deferrable``
    :param timeout: maximum seconds to wait for each of: the stop, the start, and the evaluation after the approval
    :param poke_interval: seconds between polls
    :param kwargs: arguments of ApprovalOperator, such as ``subject``, ``body``, ``assigned_users``, ``notifiers`` and
        ``response_timeout``
    """

    operator_extra_links = (PipelineLink(), PipelineChangeLink())
    template_fields: Sequence[str] = (
        "subject",
        "body",
        "pipeline_name",
        "pipeline_conn_id",
        "sql",
        "udf_python",
        "stream_program",
        "stream_files",
        "stream_arguments",
        "description",
        "runtime_config",
        "secret_conn_ids",
        "object_store_conn_id",
        "on_reject",
        "on_timeout",
    )
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers = {"sql": "sql", "udf_python": "py", "runtime_config": "json"}
    ui_color = "#cfe3f5"

    def __init__(
        self,
        *,
        pipeline_name: str,
        pipeline_conn_id: str = DEFAULT_CONN_ID,
        sql: str | None = None,
        udf_python: str | None = None,
        stream_program: StreamProgramSource | None = None,
        stream_files: Sequence[str] = (),
        stream_arguments: Sequence[str] | None = None,
        description: str | None = None,
        runtime_config: Mapping[str, Any] | None = None,
        secret_conn_ids: Sequence[str] = (),
        object_store_conn_id: str | None = None,
        compile_timeout: float = 300.0,
        on_reject: str = "keep",
        on_timeout: str = "keep",
        deferrable: bool | None = None,
        timeout: float = 600.0,
        poke_interval: float = 1.0,
        **kwargs: Any,
    ) -> None:
        if "defaults" in kwargs:
            raise ValueError("defaults is not for this operator: on_timeout says what happens when nobody has answered in time")
        kwargs.setdefault("subject", "Approve the change of a running pipeline")
        # An interrupted task may have stopped the pipeline, so a retry has to continue.
        for name, value in {"retries": 3, "retry_delay": timedelta(seconds=10)}.items():
            if name not in (kwargs.get("default_args") or {}):
                kwargs.setdefault(name, value)
        super().__init__(**kwargs)
        arguments.refuse_when_parsed(arguments.choice, "on_reject", on_reject, _ON_REJECT)
        arguments.refuse_when_parsed(arguments.choice, "on_timeout", on_timeout, _ON_TIMEOUT)
        self.given = arguments.collect_given(
            sql=sql,
            udf_python=udf_python or None,
            stream_program=stream_program,
            stream_arguments=stream_arguments,
            description=description,
            runtime_config=runtime_config,
            object_store_conn_id=object_store_conn_id,
        )
        self.pipeline_name = pipeline_name
        self.pipeline_conn_id = pipeline_conn_id
        self.sql = sql
        self.udf_python = udf_python
        self.stream_program = kept_from_templates(stream_program)
        self.stream_files = stream_files
        self.stream_arguments = stream_arguments
        self.description = description
        self.runtime_config = runtime_config
        self.secret_conn_ids = secret_conn_ids
        self.object_store_conn_id = object_store_conn_id
        self.compile_timeout = compile_timeout
        self.on_reject = on_reject
        self.on_timeout = on_timeout
        self.deferrable = is_deferrable(deferrable)
        self.timeout = timeout
        self.poke_interval = poke_interval

    @cached_property
    def hook(self) -> PipelineHook:
        """The hook for the connection."""
        return PipelineHook(self.pipeline_conn_id)

    @cached_property
    def streams(self) -> StreamProgramArguments:
        """The stream program, read on first use.

        :raises StreamFilesError: when a file is missing or cannot be used
        """
        return read_stream_program(self.stream_program, self.stream_files, self.stream_arguments, self.get_dag())

    @property
    def modification(self) -> Modification:
        """The modification that this task describes."""
        config, store = self.runtime_config, self.object_store_conn_id
        if store is not None:
            config = with_object_store(config, self.hook.get_connection(store))
        return Modification(self.sql, self.udf_python, self.streams, self.description, config)

    def check_arguments(self) -> None:
        """Validate the rendered arguments.

        :raises AirflowFailException: if an argument is invalid; the message has its name
        """
        self.pipeline_name = arguments.text("pipeline_name", self.pipeline_name)
        self.pipeline_conn_id = arguments.text("pipeline_conn_id", self.pipeline_conn_id)
        check_program_arguments(self)
        if "description" in self.given:
            arguments.present("description", self.description)
        if "runtime_config" in self.given:
            self.runtime_config = arguments.mapping("runtime_config", self.runtime_config)
        if "object_store_conn_id" in self.given:
            self.object_store_conn_id = arguments.text("object_store_conn_id", self.object_store_conn_id)
        self.secret_conn_ids = arguments.texts("secret_conn_ids", self.secret_conn_ids)
        self.on_reject = arguments.choice("on_reject", self.on_reject, _ON_REJECT)
        self.on_timeout = arguments.choice("on_timeout", self.on_timeout, _ON_TIMEOUT)

    def execute(self, context: Context) -> Any:
        """Plan the change and ask for a decision, or continue with the approval of an earlier try."""
        with airflow_errors():
            self.check_arguments()
            remembered = TaskMemory(context).recall(APPROVAL)
            if remembered is not None:
                self.log.info("This change was approved already, going on with it")
                return self._make(context, ApprovedChange.from_wire(remembered))
            store = self.object_store_conn_id
            self.hook.hand_over_connections((*self.secret_conn_ids, *(() if store is None else (store,))))
            descriptor = running_descriptor(self.hook, self.pipeline_name)
            likeness = self.modification.compare(descriptor, self.hook)
            different = sorted(name for name, degree in likeness.items() if degree is Likeness.DIFFERENT)
            if not set(different) - {"description"}:
                return self._make_what_needs_nobody(descriptor, likeness, different)
            self._check_up()
            change = planned_change(self.hook, descriptor, self.modification)
            check_accepted(self.pipeline_name, change)
            if not changes_something(change) and "runtime_config" not in different:
                self.log.info(
                    "At most comments and layout of pipeline %s's program differ: it goes on as it is, and gets them with the next "
                    "change that means something",
                    self.pipeline_name,
                )
                harmless = {name: degree for name, degree in likeness.items() if name == "description"}
                return self._make_what_needs_nobody(descriptor, harmless, [name for name in different if name in harmless])
        return self._ask(context, descriptor, change, different)

    def execute_complete(self, context: Context, event: dict[str, Any], planned: dict[str, Any] | None = None) -> Any:
        """Carry out the decision of the person.

        :param context: the task's context
        :param event: the person's answer, in Airflow's form
        :param planned: the change that the person saw: an ApprovedChange in JSON form
        :returns: the XCom
        :raises AirflowFailException: if the pipeline has changed since the change was shown
        """
        if planned is None:
            raise AirflowFailException("The task does not know what was shown any more: start a new DAG run")
        change = ApprovedChange.from_wire(planned)
        try:
            # The validated answer, without the skip of the base class.
            answer = Answer.of(super(ApprovalOperator, self).execute_complete(context, event))
        except HITLTimeoutError:
            self._tell(context, change, "timed_out", None)
            raise AirflowFailException(
                f"Nobody has answered within {self.response_timeout}: pipeline {self.pipeline_name!r} goes on as it is"
            ) from None
        if not answer.approved:
            self._reject(context, change, answer)
        approved = ApprovedChange.from_wire({**planned, "decided_by": answer.decided_by})
        self.log.info("Approved by %s", answer.decided_by or "nobody: the time was up")
        # Stored before anything else is done, because a retry finds the answer nowhere else.
        TaskMemory(context).remember(APPROVAL, approved.to_wire())
        with airflow_errors():
            self.check_arguments()
            return self._make(context, approved)

    def go_on(self, context: Context, event: dict[str, Any] | None = None, approved: dict[str, Any] | None = None) -> Any:
        """Continue after the triggerer's wait.

        :param context: the task's context
        :param event: the event of the trigger
        :param approved: the ApprovedChange in JSON form
        :returns: the XCom
        """
        with airflow_errors():
            self.check_arguments()
            change = ApprovedChange.from_wire(approved or {})
            try:
                result_of(event)
            except AirflowFailException as error:
                raise self._make_gated_change(context, change).failure(error) from error
            return self._make(context, change)

    def on_kill(self) -> None:
        """Log that the pipeline is left as it is, because the task was cleared or marked.

        A retry finds it and continues from there.
        """
        self.log.info(
            "The task ends, pipeline %s is left as it is. If it was stopped for an approved change, a retry goes on with that",
            self.pipeline_name,
        )
        end_task_of_dag_test()

    # Asking.

    def _check_up(self) -> None:
        """Check that the pipeline runs, and has no other pending change."""
        try:
            outcome = self.hook.wait(self.pipeline_name, _SETTLED, timeout_s=self.timeout, poll_interval_s=self.poke_interval)
        except PipelineFailedError as error:
            raise AirflowFailException(
                f"{error}. This operator changes a pipeline that runs: start it first, or use ModifyPipelineOperator, "
                "StartPipelineOperator and ReviewPipelineChangeOperator"
            ) from error
        if outcome["status"] == PipelineStatus.AWAITINGAPPROVAL.name:
            raise AirflowFailException(
                f"Pipeline {self.pipeline_name!r} waits for the approval of another change: approve it with "
                "ReviewPipelineChangeOperator or ApprovePipelineOperator first, or stop the pipeline"
            )

    def _ask(self, context: Context, descriptor: Mapping[str, Any], change: PendingChange, different: list[str]) -> Any:
        config = config_changes(descriptor["runtime_config"], self.modification.runtime_config or {})
        fingerprint = change_fingerprint(change, self.modification.fingerprint, self.pipeline_name)
        parts = [change_markdown(change)]
        if config:
            parts += ["The configuration changes:", "\n".join(f"- {line}" for line in config)]
        self.log.info("Asking for the approval of:\n%s", "\n".join([change_text(change), *config]))
        write_request(self, self.pipeline_name, "\n\n".join(parts), fingerprint)
        self.defaults = {"keep": None, "approve": [self.APPROVE], "reject": [self.REJECT]}[self.on_timeout]
        review = review_xcom(self.pipeline_name, self.pipeline_conn_id, change, planned=True, version=int(descriptor["version"]))
        context["ti"].xcom_push(key=REVIEW_KEY, value=review)
        try:
            return super().execute(context)
        except TaskAwaitingInput as wait:
            check_request(context, self, fingerprint)
            # The task continues in another process, so the change that was shown is passed on.
            version, wanted = int(descriptor["version"]), self.modification.fingerprint
            planned = ApprovedChange(change_xcom(change), different, version, wanted)
            wait.kwargs = {"planned": planned.to_wire()}
            return await_answer(context, self, wait)

    def _reject(self, context: Context, change: ApprovedChange, answer: Answer) -> None:
        by = answer.decided_by or f"nobody answered within {self.response_timeout}, and on_timeout"
        self._tell(context, change, "rejected", answer.decided_by)
        text = f"The change was rejected ({by}): pipeline {self.pipeline_name!r} goes on as it is"
        self.log.info(text)
        raise AirflowFailException(text) if self.on_reject == "fail" else AirflowSkipException(text)

    def _tell(self, context: Context, change: ApprovedChange, decision: str, decided_by: str | None) -> None:
        """Push the decision as an XCom, because a task that does not succeed returns nothing."""
        xcom = {"pipeline": self.pipeline_name, "decision": decision, "decided_by": decided_by, "changed": [], **change.shown}
        context["ti"].xcom_push(key="decision", value={**xcom, "diff_text": diff_text(change.shown["diff"])})

    # Changing.

    def _make_what_needs_nobody(
        self, descriptor: Mapping[str, Any], likeness: Mapping[str, Likeness], different: list[str]
    ) -> dict[str, Any]:
        """Apply the changes that a running pipeline accepts."""
        changes = self.modification.changes(descriptor, likeness)
        if changes:
            self.hook.modify(self.pipeline_name, changes)
        self.log.info("Pipeline %s %s", self.pipeline_name, f"has another {different[0]}" if different else "is as it should be")
        return self._xcom("not_needed", None, different, change_xcom(None))

    def _make_gated_change(self, context: Context, approved: ApprovedChange) -> GatedChange:
        memory = TaskMemory(context)
        return GatedChange(self, self.modification, approved, memory, method_name="go_on", compile_timeout=self.compile_timeout)

    def _make(self, context: Context, approved: ApprovedChange) -> dict[str, Any]:
        gated = self._make_gated_change(context, approved)
        gated.advance()
        change = gated.approved
        xcom = self._xcom("approved", change.decided_by, change.changed, change.shown, change.stopped_at)
        self.log.info("Pipeline %s runs with the approved change; it was down for %s s", self.pipeline_name, xcom["outage_s"])
        TaskMemory(context).forget(APPROVAL)
        return xcom

    def _xcom(
        self, decision: str, decided_by: str | None, changed: list[str], shown: dict[str, Any], stopped_at: float | None = None
    ) -> dict[str, Any]:
        descriptor = running_descriptor(self.hook, self.pipeline_name)
        since = datetime.fromisoformat(descriptor["deployment_status_since"]).timestamp()
        return {
            "pipeline": self.pipeline_name,
            "decision": decision,
            "decided_by": decided_by,
            "changed": changed,
            "status": PipelineStatus.from_str(str(descriptor["deployment_status"])).name,
            "version": descriptor["version"],
            "program_version": descriptor["program_version"],
            "outage_s": None if stopped_at is None else round(max(since - stopped_at, 0.0), 1),
            "diff_text": "" if shown["diff"] is None else diff_text(shown["diff"]),
            **shown,
        }
