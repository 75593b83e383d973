"""Operators that update a pipeline to the program of the DAG, without losing its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_pipelines.hooks.configuration import is_deferrable
from airflow_pipelines.lineage.openlineage import TellsLineage
from airflow_pipelines.links.pipeline import PipelineChangeLink, PipelineLink
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.base import PipelineOperator, airflow_errors
from airflow_pipelines.operators.compiling import defer_until_compiler
from airflow_pipelines.operators.modification import PROGRAM_FIELDS, Modification, check_program_arguments, is_up
from airflow_pipelines.operators.object_store import with_object_store
from airflow_pipelines.operators.stream_program import kept_from_templates, read_stream_program
from airflow_pipelines.sdk.likeness import Likeness
from airflow_pipelines.sdk.stream_collecting import StreamProgramArguments, StreamProgramSource
from airflow_pipelines.triggers.pipeline import result_of

if TYPE_CHECKING:
    from airflow.sdk import Context

_IF_EXISTS = ("modify", "replace", "keep")


class ModifyPipelineOperator(PipelineOperator, TellsLineage):
    """The operator that changes a stopped pipeline and waits until its program is compiled.

    State is kept: the next start shows the difference to approve.

    Arguments that are not given leave their parts as they are. A modification that equals the pipeline does nothing, whatever the
    pipeline's status.

    XCom: ``{"pipeline", "id", "version", "program_version", "changed"}``; ``changed`` lists the fields that were changed.

    :param sql: the program's text, or the path of a ``.sql`` file, which may be a URL that fsspec supports
    :param udf_python: the text of the Python module with the program's functions. It is a template, and Jinja may interpret
        Python's braces: ``airflow.sdk.literal(text)`` is not rendered. A literal empty text removes the functions.
    :param stream_program: the stream program: the path of a Python file, which includes the modules of its folder that it imports,
        or of a folder with a ``__main__.py``; or the texts of its files by path. A path is a template, and relative to the DAG's
        folder. The files are no templates, and are read when the task runs
    :param stream_files: other files and folders that the stream program needs, relative to its folder
    :param stream_arguments: the stream program's command line
    :param description: a description
    :param runtime_config: the values to change of the runtime configuration, in wire form
    :param file_conn_id: the connection with the credentials for a URL, as for IngestFileOperator
    :param compile_timeout: seconds to wait for the compiler
    :param deferrable: True to wait in the triggerer until the service can compile, which may have to start a host for it; default
        ``[operators] default_deferrable``. The task holds its worker while the program itself is compiled
    :param secret_conn_ids: Airflow connections whose parts the program or the configuration names as
        ``${secret:airflow/CONN_ID/password}`` (or ``login``, ``host``, ``schema``, ``port``, or a name of the extras). They are
        sent to the service before anything else is done; a running pipeline keeps the values that it has.
    :param object_store_conn_id: the Airflow connection (of type ``aws``) of the object store that checkpoints are copied to. Its
        login and password are sent to the service, and the configuration only refers to them. Its extras ``endpoint_url``,
        ``region_name`` and ``bucket`` are the defaults for values that ``runtime_config`` does not set
    """

    operator_extra_links = (PipelineLink(), PipelineChangeLink())
    template_fields: Sequence[str] = (
        *PipelineOperator.template_fields,
        "sql",
        "udf_python",
        "stream_program",
        "stream_files",
        "stream_arguments",
        "description",
        "runtime_config",
        "secret_conn_ids",
        "file_conn_id",
        "object_store_conn_id",
    )
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers = {"sql": "sql", "udf_python": "py", "runtime_config": "json"}

    def __init__(
        self,
        *,
        sql: str | None = None,
        udf_python: str | None = None,
        stream_program: StreamProgramSource | None = None,
        stream_files: Sequence[str] = (),
        stream_arguments: Sequence[str] | None = None,
        description: str | None = None,
        runtime_config: Mapping[str, Any] | None = None,
        compile_timeout: float = 300.0,
        secret_conn_ids: Sequence[str] = (),
        file_conn_id: str | None = None,
        object_store_conn_id: str | None = None,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.file_conn_id = file_conn_id
        self.deferrable = is_deferrable(deferrable)
        self.given = arguments.collect_given(
            sql=sql,
            # An empty text in the DAG file is intended.
            udf_python=udf_python or None,
            stream_program=stream_program,
            stream_arguments=stream_arguments,
            description=description,
            runtime_config=runtime_config,
            object_store_conn_id=object_store_conn_id,
        )
        self.sql = sql
        self.secret_conn_ids = secret_conn_ids
        self.object_store_conn_id = object_store_conn_id
        self.udf_python = udf_python
        self.stream_program = kept_from_templates(stream_program)
        self.stream_files = stream_files
        self.stream_arguments = stream_arguments
        self.description = description
        self.runtime_config = runtime_config
        self.compile_timeout = compile_timeout

    def check_arguments(self) -> None:
        """See the base class.

        An argument that the DAG gives but whose value is lost fails the task; it must not count as "not given".
        """
        super().check_arguments()
        check_program_arguments(self)
        if "description" in self.given:
            arguments.present("description", self.description)
        if "runtime_config" in self.given:
            self.runtime_config = arguments.mapping("runtime_config", self.runtime_config)
        self.secret_conn_ids = arguments.texts("secret_conn_ids", self.secret_conn_ids)
        if "object_store_conn_id" in self.given:
            self.object_store_conn_id = arguments.text("object_store_conn_id", self.object_store_conn_id)

    def execute_complete(self, context: Context, event: dict[str, Any] | None = None) -> Any:
        """Continue when the service can compile.

        :param context: the task's context
        :param event: the event of the trigger
        :returns: the XCom
        """
        with airflow_errors():
            result_of(event)
        self.deferrable = False
        return self.execute(context)

    def act(self, context: Context) -> dict[str, Any]:
        """Modify the pipeline."""
        self._hand_over_connections()
        descriptor = self.hook.descriptor(self.pipeline_name, "all")
        if descriptor is None:
            raise AirflowFailException(
                f"There is no pipeline {self.pipeline_name!r} to modify: deploy it with DeployPipelineOperator"
            )
        return self.modify(descriptor)

    def modify(self, descriptor: Mapping[str, Any]) -> dict[str, Any]:
        """Send the fields that differ from a pipeline's descriptor, and wait for the compiler.

        :param descriptor: the pipeline as the service sends it, with all fields
        :returns: the XCom
        :raises AirflowFailException: if a field differs that cannot be changed while the pipeline runs
        """
        modification = self.modification()
        likeness = modification.compare(descriptor, self.hook)
        if max(likeness.values(), default=Likeness.SAME) is Likeness.SAME:
            self.log.info("Pipeline %s is as it should be", self.pipeline_name)
            return self.xcom(descriptor, changed=[])
        if not {*PROGRAM_FIELDS}.isdisjoint(likeness):
            self._await_compiler()
        different = {name for name, degree in likeness.items() if degree is Likeness.DIFFERENT}
        if different - {"description"} and is_up(descriptor):
            if different & {*PROGRAM_FIELDS}:
                # Errors should show now, and not after the pipeline was stopped.
                self._validate(modification, descriptor)
            raise AirflowFailException(
                f"Pipeline {self.pipeline_name!r} is {descriptor['deployment_status']} and differs in "
                f"{', '.join(sorted(different))}: it can be modified when it is stopped, so put a StopPipelineOperator before"
            )
        changes = modification.changes(descriptor, likeness)
        if not changes:
            self.log.info("The program of pipeline %s differs in comments only: they wait until it is stopped", self.pipeline_name)
            return self.xcom(descriptor, changed=[])
        modified = self.hook.modify(self.pipeline_name, changes)
        if modified["version"] == descriptor["version"] and not different:
            self.log.info("Pipeline %s is as it should be, its secrets too", self.pipeline_name)
            return self.xcom(modified, changed=[])
        changed = sorted(changes)
        self.log.info("Pipeline %s changed in %s", self.pipeline_name, ", ".join(changed))
        self.hook.wait_until_compiled(self.pipeline_name, int(modified["program_version"]), timeout_s=self.compile_timeout)
        return self.xcom(modified, changed=changed)

    def _await_compiler(self) -> None:
        if self.deferrable:
            defer_until_compiler(self)

    def _hand_over_connections(self) -> None:
        """Send the secrets of the connections to the service, before anything refers to them."""
        store = self.object_store_conn_id
        if store is not None:
            self.runtime_config = with_object_store(self.runtime_config, self.hook.get_connection(store))
        self.hook.hand_over_connections((*self.secret_conn_ids, *(() if store is None else (store,))))

    def _validate(self, modification: Modification, descriptor: Mapping[str, Any] | None) -> None:
        self.log.info("Compiling the program for pipeline %s; that starts a host if there is none", self.pipeline_name)
        program = modification.program(descriptor, self.hook)
        self.hook.validate(self.pipeline_name, program, timeout_s=self.compile_timeout)

    def modification(self) -> Modification:
        """Return the modification that this task describes."""
        return Modification(self.sql, self.udf_python, self.streams, self.description, self.runtime_config)

    @cached_property
    def streams(self) -> StreamProgramArguments:
        """The stream program, read on first use.

        :raises StreamFilesError: when a file is missing or cannot be used
        """
        return read_stream_program(self.stream_program, self.stream_files, self.stream_arguments, self.get_dag())

    def xcom(self, descriptor: Mapping[str, Any], *, changed: list[str]) -> dict[str, Any]:
        """Return the operator's XCom.

        :param descriptor: the pipeline as the service sends it
        :param changed: the names of the fields that were sent
        """
        return {
            "pipeline": self.pipeline_name,
            "id": descriptor["id"],
            "version": descriptor["version"],
            "program_version": descriptor["program_version"],
            "changed": changed,
        }


class DeployPipelineOperator(ModifyPipelineOperator):
    """The operator that ensures that a pipeline with a program exists, and waits until the program is compiled.

    It does not start it.

    XCom: that of ModifyPipelineOperator, with ``action``: ``created``, ``modified``, ``unchanged``, ``replaced`` or ``kept``.

    :param sql: the program's text, or the path of a ``.sql`` file; it may be omitted if there is a stream program
    :param stream_program: see ModifyPipelineOperator
    :param if_exists: the action on an existing pipeline: ``modify`` it if it differs, keeping its state; ``keep`` it as it is;
        or ``replace`` it, which stops it and drops its state
    """

    template_fields: Sequence[str] = (*ModifyPipelineOperator.template_fields, "if_exists")

    def __init__(
        self,
        *,
        sql: str | None = None,
        stream_program: StreamProgramSource | None = None,
        if_exists: str = "modify",
        **kwargs: Any,
    ) -> None:
        super().__init__(sql=sql, stream_program=stream_program, **kwargs)
        if sql is None and (stream_program is None or stream_program == {}):
            raise ValueError("there is no program to deploy: give sql, stream_program, or both")
        arguments.refuse_when_parsed(arguments.choice, "if_exists", if_exists, _IF_EXISTS)
        self.if_exists = if_exists

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.if_exists = arguments.choice("if_exists", self.if_exists, _IF_EXISTS)

    def act(self, context: Context) -> dict[str, Any]:
        """Deploy the pipeline."""
        self._hand_over_connections()
        descriptor = self.hook.descriptor(self.pipeline_name, "all")
        if descriptor is None:
            self._await_compiler()
            # A program that does not compile leaves no pipeline behind.
            self._validate(self.modification(), None)
            create, action = self.hook.create, "created"
        elif self.if_exists == "replace":
            self._await_compiler()
            create, action = self.hook.replace, "replaced"
        elif self.if_exists == "keep":
            self.log.info("Pipeline %s exists, and is kept as it is", self.pipeline_name)
            return {**self.xcom(descriptor, changed=[]), "action": "kept"}
        else:
            result = self.modify(descriptor)
            return {**result, "action": "modified" if result["changed"] else "unchanged"}
        create(
            self.pipeline_name,
            self.sql or "",
            udf_python=self.udf_python or "",
            stream_program=self.streams.files,
            stream_arguments=self.streams.arguments,
            description=self.description or "",
            runtime_config=self.runtime_config,
            compile_timeout_s=self.compile_timeout,
        )
        made = self.hook.descriptor(self.pipeline_name) or {}
        self.log.info("Pipeline %s was %s, and is not started", self.pipeline_name, action)
        return {**self.xcom(made, changed=[]), "action": action}
