"""The hook: one Airflow connection, one client, one small method for each action. It depends on no task and no context."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from airflow_pipelines.common.pins import check_spark_packages
from airflow_pipelines.contract.enums import BootstrapPolicy, PipelineStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.push_keys import IDEMPOTENCY_KEY_HEADER, check_push_key
from airflow_pipelines.hooks import compiling, configuration
from airflow_pipelines.hooks.clients import loop_clients
from airflow_pipelines.hooks.conditions import Condition, Observation
from airflow_pipelines.hooks.connection import ServiceAddress, secret_parts
from airflow_pipelines.hooks.connection_report import connection_report
from airflow_pipelines.hooks.observing import observe
from airflow_pipelines.hooks.wait_log import WaitLog
from airflow_pipelines.hooks.wait_metrics import measured_wait
from airflow_pipelines.hooks.waiting import Wait, wait_in_place
from airflow_pipelines.sdk.approval import NOT_GIVEN, NotGiven, approval_body
from airflow_pipelines.sdk.client import AsyncPipelineClient, PipelineClient, tls_context
from airflow_pipelines.sdk.errors import (
    PipelineAPIError,
    PipelinesError,
    refused_program,
)
from airflow_pipelines.sdk.wire import path_of

if TYPE_CHECKING:
    from airflow_pipelines.contract.descriptors import PendingChange
    from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
    from airflow_pipelines.sdk.pipelines.pipeline import Pipeline
    from airflow_pipelines.sdk.stream_collecting import StreamProgramSource

DEFAULT_CONN_ID = "airflow_pipelines_default"
COMPILE_S = 300.0
"""The default seconds to wait for the compiler."""


@dataclass(frozen=True, slots=True)
class PushResult:
    """The answer to a push.

    :param token: the completion token, which covers the rows
    :param already_there: True if an earlier push with the same key had added the rows, so that nothing was added now
    """

    token: str
    already_there: bool = False


class PipelineHook(BaseHook):
    """The hook for pipelines behind one Airflow connection of type ``airflow_pipelines``.

    A connection with a host is a service in the network (``airflow-pipelines serve``), its password the API key, its extras
    ``verify``, ``ca_file``, ``timeout`` and ``connect_timeout``. A connection without a host, or no connection at all under the
    default id, is the embedded service: its extras ``home``, ``deployer`` and ``spark_conn_id`` set the folder of its store and the
    deployment of its hosts.

    :param pipeline_conn_id: the connection's id
    :param timeout_s: seconds to wait for one answer of the service; by default the connection's extra ``timeout``, else two minutes
    :param outage_budget_s: seconds that the service may be away before a request or a wait fails; by default ``[airflow_pipelines]
        outage_budget``
    """

    conn_name_attr = "pipeline_conn_id"
    default_conn_name = DEFAULT_CONN_ID
    conn_type = "airflow_pipelines"
    hook_name = "Airflow Pipelines"

    def __init__(
        self, pipeline_conn_id: str = DEFAULT_CONN_ID, *, timeout_s: float | None = None, outage_budget_s: float | None = None
    ) -> None:
        super().__init__()
        self.pipeline_conn_id = pipeline_conn_id
        self.timeout_s = timeout_s
        self.outage_budget_s = configuration.outage_budget_s() if outage_budget_s is None else outage_budget_s
        self._client: PipelineClient | None = None

    # Connection

    def get_conn(self) -> PipelineClient:
        """Return the client for the connection, made once. Its requests tolerate outages of the service.

        :raises AirflowNotFoundException: if there is no such connection and its id is not the default one
        :raises ValueError: if the connection contradicts itself
        :raises SetupError: if the installed pyspark and pyspark-client do not fit together
        """
        if self._client is None:
            address = self._address()
            # The Spark provider interprets a missing connection as "submit to YARN"; here it is an error.
            spark = self.get_connection(address.spark_conn_id) if address.spark_conn_id else None
            self._client = PipelineClient(**self._client_arguments(address, spark), outage_budget_s=self.outage_budget_s)
        return self._client

    async def get_async_conn(self) -> AsyncPipelineClient:
        """Return a new asynchronous client for the connection, which the caller closes. It never blocks the event loop."""
        return await self._async_client(await self._async_address())

    @asynccontextmanager
    async def shared_async_conn(self) -> AsyncIterator[AsyncPipelineClient]:
        """Yield the asynchronous client that all waits of this event loop on this connection share, for the length of a block.

        A changed connection leads to another client within half a minute.

        :raises AirflowNotFoundException: as :meth:`get_conn` does; it raises its other errors too
        """
        clients = loop_clients()
        async with clients.client(self.pipeline_conn_id, self._async_address, self._async_client) as client:
            yield client

    def close(self) -> None:
        """Close the client's connections."""
        if self._client is not None:
            self._client.close()

    def test_connection(self) -> tuple[bool, str]:
        """Check within seconds that the connection can be used.

        A service in the network is asked. For the embedded one the check is whether it could be created. It creates no store, needs
        no Java and starts no Spark.
        """
        try:
            return True, connection_report(self._address(), self.get_connection)
        except (PipelinesError, AirflowNotFoundException, ValueError, RuntimeError, OSError) as error:
            return False, f"{type(error).__name__}: {error}"

    def _address(self) -> ServiceAddress:
        try:
            return ServiceAddress.of(self.get_connection(self.pipeline_conn_id))
        except AirflowNotFoundException:
            return self._default_address()

    async def _async_address(self) -> tuple[ServiceAddress, Any]:
        """Return the address of the connection, with its Spark connection if it has one."""
        try:
            address = ServiceAddress.of(await self.aget_connection(self.pipeline_conn_id))
        except AirflowNotFoundException:
            address = self._default_address()
        return address, (await self.aget_connection(address.spark_conn_id) if address.spark_conn_id else None)

    def _default_address(self) -> ServiceAddress:
        """Return the address for a missing connection: the embedded service for the default id.

        :raises AirflowNotFoundException: if the id is another one
        """
        if self.pipeline_conn_id != self.default_conn_name:
            raise AirflowNotFoundException(f"There is no connection {self.pipeline_conn_id!r} of type {self.conn_type}")
        return ServiceAddress()

    async def _async_client(self, pair: tuple[ServiceAddress, Any]) -> AsyncPipelineClient:
        address, spark_connection = pair
        arguments = self._client_arguments(address, spark_connection)
        if address.url is not None and address.url.startswith("https://") and address.verify:
            # Reading the authorities' certificates takes tens of milliseconds.
            arguments["verify"] = await asyncio.to_thread(tls_context, address.ca_file)
        return AsyncPipelineClient(**arguments)

    def _client_arguments(self, address: ServiceAddress, spark_connection: Any) -> dict[str, Any]:
        if address.api_key:
            mask_secret(address.api_key)
        if address.url is None:
            # The embedded service runs Spark, with what is installed here.
            check_spark_packages()
        arguments = address.client_arguments()
        if self.timeout_s is not None:
            arguments["timeout_s"] = self.timeout_s
        if spark_connection is not None:
            # Imported here: most connections submit nothing, and this loads the Spark provider.
            from airflow_pipelines.hooks.spark import dedicated_hosts

            arguments["deployers"] = dedicated_hosts(spark_connection)
        return arguments

    # Looking and waiting

    def descriptor(self, name: str, selector: str = "status") -> dict[str, Any] | None:
        """Return a pipeline's descriptor, or None if there is no such pipeline.

        :param name: the pipeline's name
        :param selector: ``status`` or ``all``
        """
        try:
            descriptor: dict[str, Any] = self.get_conn().request("GET", path_of("pipelines", name), params={"selector": selector})
        except PipelineAPIError as error:
            if error.error_code == ErrorCode.UNKNOWN_PIPELINE_NAME:
                return None
            raise
        return descriptor

    def status(self, name: str) -> PipelineStatus:
        """Return a pipeline's status; NOT_FOUND if there is no pipeline."""
        return Observation(self.descriptor(name), time.time()).status

    def observe(self, name: str, condition: Condition) -> Observation:
        """Poll a pipeline once for a condition.

        :param name: the pipeline's name
        :param condition: the condition, which names the request to make beside the descriptor
        :returns: the observation
        :raises PipelinesError: if the service cannot be asked; a refusal that says something about the pipeline is in the
            observation
        """
        return observe(self.get_conn(), name, condition)

    def wait(self, name: str, condition: Condition, *, timeout_s: float | None, poll_interval_s: float) -> dict[str, Any]:
        """Block until a condition holds.

        :param name: the pipeline's name
        :param condition: the condition to wait for
        :param timeout_s: maximum seconds to wait, None for no limit
        :param poll_interval_s: seconds between polls
        :returns: the result of the condition
        :raises PipelineFailedError: if the condition cannot be reached any more; the message has the deployment error
        :raises PipelineTimeoutError: if the time is up; the message has the last observation
        :raises PipelineConnectionError: if the service was away for longer than the outage budget
        """
        deadline = None if timeout_s is None else time.time() + timeout_s
        wait = Wait(name, condition, deadline, self.outage_budget_s, story=WaitLog(self.log))
        with measured_wait(condition.kind):
            return wait_in_place(wait, lambda: self.observe(name, condition), poll_interval_s)

    def wait_until_compiled(self, name: str, program_version: int, *, timeout_s: float, poll_interval_s: float = 0.5) -> None:
        """Block until a version of a pipeline's program is compiled.

        :param name: the pipeline's name
        :param program_version: the version to wait for; a later one is enough
        :param timeout_s: maximum seconds to wait
        :param poll_interval_s: seconds between polls
        :raises ProgramCompilationError: if it does not compile; the message has the lines, columns and reasons
        :raises PipelineTimeoutError: if the compiler did not finish in time
        """
        warnings = compiling.wait_until_compiled(
            lambda: self.descriptor(name, "all") or {},
            name,
            program_version,
            story=WaitLog(self.log),
            timeout_s=timeout_s,
            poll_interval_s=poll_interval_s,
        )
        if warnings:
            self.log.warning("The program of pipeline %r compiled with warnings:\n%s", name, warnings)

    # Actions

    def pipeline(self, name: str) -> Pipeline:
        """Return the SDK's object for an existing pipeline.

        :param name: the pipeline's name
        :raises PipelineAPIError: if there is no such pipeline
        """
        from airflow_pipelines.sdk.pipelines.pipeline import Pipeline

        return Pipeline.get(name, self.get_conn())

    def udf_python(self, name: str) -> str:
        """Return the Python module with a pipeline's functions, empty if it has none."""
        return self.pipeline(name).udf_python()

    def create(
        self,
        name: str,
        sql: str,
        *,
        udf_python: str = "",
        stream_program: StreamProgramSource | None = None,
        stream_arguments: Sequence[str] | None = None,
        description: str = "",
        runtime_config: Mapping[str, Any] | None = None,
        compile_timeout_s: float = COMPILE_S,
    ) -> Pipeline:
        """Create a pipeline and wait until it is compiled.

        :param name: the pipeline's name
        :param sql: its program
        :param udf_python: the Python module with the program's functions
        :param stream_program: its stream program, see :class:`~airflow_pipelines.sdk.pipeline_builder.PipelineBuilder`
        :param stream_arguments: the command line of its stream program
        :param description: a description for readers
        :param runtime_config: the runtime configuration as the wire object; missing fields get their defaults
        :param compile_timeout_s: seconds to wait for the compiler
        :returns: the SDK's object for it
        :raises PipelineAPIError: if there is such a pipeline already, or the service refuses a value
        :raises ProgramCompilationError: if the program does not compile
        """
        pipeline: Pipeline = self._builder(
            name, sql, udf_python, stream_program, stream_arguments, description, runtime_config
        ).create(wait=False)
        self.wait_until_compiled(name, 1, timeout_s=compile_timeout_s)
        return pipeline

    def replace(
        self,
        name: str,
        sql: str,
        *,
        udf_python: str = "",
        stream_program: StreamProgramSource | None = None,
        stream_arguments: Sequence[str] | None = None,
        description: str = "",
        runtime_config: Mapping[str, Any] | None = None,
        compile_timeout_s: float = COMPILE_S,
    ) -> Pipeline:
        """Create a pipeline, or drop the existing one with all its state and create it again.

        :param name: the pipeline's name
        :param sql: its program
        :param udf_python: the Python module with the program's functions
        :param stream_program: its stream program, see :class:`~airflow_pipelines.sdk.pipeline_builder.PipelineBuilder`
        :param stream_arguments: the command line of its stream program
        :param description: a description for readers
        :param runtime_config: the runtime configuration as the wire object; missing fields get their defaults
        :param compile_timeout_s: seconds to wait for the compiler
        :returns: the SDK's object for it
        :raises PipelineAPIError: if the service refuses a value
        :raises ProgramCompilationError: if the program does not compile
        """
        pipeline: Pipeline = self._builder(
            name, sql, udf_python, stream_program, stream_arguments, description, runtime_config
        ).create_or_replace(wait=False)
        # The wait for the compiler is the same for any version.
        self.wait_until_compiled(name, 1, timeout_s=compile_timeout_s)
        return pipeline

    def modify(self, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Change fields of a stopped pipeline, keeping its state.

        :param name: the pipeline's name
        :param changes: wire fields such as ``program_code``, ``stream_files``, ``udf_python``, ``runtime_config``, ``description``
        :returns: the new descriptor
        :raises ProgramCompilationError: if the new program does not compile and the old one does; nothing is changed
        :raises PipelineAPIError: if the new program is empty, or the pipeline is not stopped
        """
        path = path_of("pipelines", name)
        try:
            descriptor: dict[str, Any] = self.get_conn().request(
                "PATCH", path, json=dict(changes), params={"allow_compile_errors": False}, idempotent=True
            )
        except PipelineAPIError as error:
            raise refused_program(error, name) from error
        return descriptor

    def validate(self, name: str, program: Mapping[str, Any], *, timeout_s: float | None = None) -> None:
        """Compile a program without giving it to a pipeline.

        :param name: the pipeline that the program is meant for, for the message
        :param program: its wire fields: ``program_code``, ``udf_python``, ``stream_files``, ``stream_arguments``
        :param timeout_s: seconds to wait for the compiler; by default the connection's timeout
        :raises ProgramCompilationError: if it does not compile; the message has the lines, columns and reasons
        :raises PipelinesError: if the compiler itself failed
        """
        compiling.validate(self.get_conn(), name, program, timeout_s=timeout_s)

    def plan(self, name: str, changes: Mapping[str, Any]) -> PendingChange:
        """Return the change that another program would mean for a running pipeline. The pipeline is neither stopped nor held up.

        :param name: the pipeline's name
        :param changes: wire fields of the other program: ``program_code``, ``udf_python``, ``stream_files``, ``stream_arguments``;
            missing fields stay as they are
        :returns: the change that :meth:`pending_change` would return after the pipeline was stopped, modified and started
        :raises ProgramCompilationError: if the other program does not compile
        :raises PipelineAPIError: if the pipeline does not run
        """
        from airflow_pipelines.contract.descriptors import PendingChange

        path = path_of("pipelines", name, "plan")
        try:
            return PendingChange.from_dict(self.get_conn().request("POST", path, json=dict(changes), idempotent=True))
        except PipelineAPIError as error:
            raise refused_program(error, name) from error

    def set_secret(self, name: str, value: str) -> None:
        """Create or update a secret that programs and configurations name as ``${secret:NAME}``.

        :param name: the secret's name, with ``/`` between its parts
        :param value: the value. It is masked in this task's log.
        """
        mask_secret(value)
        self.get_conn().request("PUT", path_of("secrets", *name.split("/")), json={"value": value}, idempotent=True)

    def hand_over_connections(self, conn_ids: Sequence[str]) -> None:
        """Create secrets from the parts of Airflow connections: ``airflow/CONN_ID/password`` and so on.

        :param conn_ids: the connections
        :raises AirflowNotFoundException: if there is no such connection
        """
        for conn_id in conn_ids:
            for part, value in secret_parts(self.get_connection(conn_id)).items():
                self.set_secret(f"airflow/{conn_id}/{part}", value)

    def start(
        self,
        name: str,
        *,
        initial: str = "running",
        bootstrap_policy: BootstrapPolicy | None = None,
        from_checkpoint: UUID | None = None,
    ) -> None:
        """Ask a stopped pipeline to start, without waiting. The same request twice is harmless.

        :param name: the pipeline's name
        :param initial: ``running`` or ``paused``
        :param bootstrap_policy: the policy if the program differs from that of the checkpoint
        :param from_checkpoint: an older checkpoint to restore. Everything after it is lost; the files of that are set aside in the
            pipeline's storage. A pipeline that is up, and was not started from it, refuses.
        """
        params = {
            "initial": initial,
            "bootstrap_policy": bootstrap_policy.value if bootstrap_policy else None,
            "from_checkpoint": str(from_checkpoint) if from_checkpoint else None,
        }
        self._post(name, "start", params)

    def pause(self, name: str) -> None:
        """Ask a pipeline to pause, without waiting."""
        self._post(name, "pause")

    def resume(self, name: str) -> None:
        """Ask a paused pipeline to resume, without waiting."""
        self._post(name, "resume")

    def stop(self, name: str) -> None:
        """Ask a pipeline to take a checkpoint and stop, without waiting."""
        self._post(name, "stop", {"force": False})

    def force_stop(self, name: str) -> None:
        """Ask a pipeline to stop at once without a checkpoint, without waiting."""
        self._post(name, "stop", {"force": True})

    def activate(self, name: str, *, initial: str = "running") -> None:
        """Ask a pipeline in standby to take over, without waiting.

        :param name: the pipeline's name
        :param initial: ``running`` or ``paused``
        :raises PipelineAPIError: if it is not in standby
        """
        self.get_conn().request("POST", path_of("pipelines", name, "activate"), params={"initial": initial.capitalize()})

    def clear_storage(self, name: str) -> None:
        """Ask a stopped pipeline to delete everything it stored, without waiting. The same request twice is harmless.

        :param name: the pipeline's name
        :raises PipelineAPIError: if it is not stopped
        """
        self._post(name, "clear")

    def approve(self, name: str, expected_programs: Mapping[str, Any] | NotGiven = NOT_GIVEN) -> None:
        """Approve the change that a pipeline in AWAITINGAPPROVAL shows.

        :param name: the pipeline's name
        :param expected_programs: the ``programs`` of the :meth:`pending_change` to approve; if not given, any change is approved
        :raises ValueError: if ``expected_programs`` is empty or None
        :raises PipelineAPIError: if the programs differ, with code ``UnexpectedProgram``; nothing is approved then
        """
        self.get_conn().request("POST", path_of("pipelines", name, "approve"), json=approval_body(expected_programs))

    def delete(self, name: str) -> None:
        """Clear a stopped pipeline's storage and delete it.

        :param name: the pipeline's name
        :raises PipelineAPIError: if there is no such pipeline, or it is not stopped
        """
        self.pipeline(name).delete(clear_storage=True)

    def pending_change(self, name: str) -> PendingChange:
        """Return the change that waits for approval.

        :param name: the pipeline's name
        :raises PipelineAPIError: if there is no such pipeline
        :raises PipelinesError: if nothing waits for approval
        """
        change = self.pipeline(name).pending_change()
        if change is None or not change.diff:
            raise PipelinesError(f"Pipeline {name!r} shows no change to approve; its status is {self.status(name).name}")
        return change

    def checkpoint(self, name: str, *, timeout_s: float | None = None) -> dict[str, Any]:
        """Take a checkpoint and wait for it.

        :param name: the pipeline's name
        :param timeout_s: maximum seconds to wait; None waits without limit
        :returns: the checkpoint's entry in the list of checkpoints, with its ``sequence``
        :raises PipelineFailedError: if the checkpoint failed, or the pipeline stopped; the message says why
        :raises PipelineTimeoutError: if it did not finish in time
        """
        sequence = self.pipeline(name).checkpoint(wait=True, timeout_s=timeout_s)
        return {"sequence": sequence, **self.newest_checkpoint(name)}

    def newest_checkpoint(self, name: str) -> dict[str, Any]:
        """Return the entry of the newest checkpoint: ``uuid, steps, processed_records, size, ...``; empty if there is none."""
        details = (self.descriptor(name) or {}).get("storage_status_details") or {}
        # UUIDv7: the greatest is the newest.
        return max(details.get("checkpoints") or [], key=lambda entry: str(entry["uuid"]), default={})

    def sync_checkpoint(self, name: str, *, timeout_s: float | None = None) -> str:
        """Copy the newest checkpoint to the object store of the pipeline's storage configuration and wait for it.

        :param name: the pipeline's name
        :param timeout_s: maximum seconds to wait; None waits without limit
        :returns: the checkpoint's UUID
        """
        return self.pipeline(name).sync_checkpoint(wait=True, timeout_s=timeout_s)

    def ingest(self, name: str, table: str, body: bytes, params: Mapping[str, Any], key: str | None = None) -> PushResult:
        """Push one request of rows into a table.

        :param name: the pipeline's name
        :param table: the table
        :param body: the rows, in the format that ``params`` names
        :param params: ``format`` and its options, as for the ingress endpoint
        :param key: the idempotency key of the rows; None to add them at every push
        :returns: the completion token, and True if the rows were there already
        """
        path = path_of("pipelines", name, "ingress", table)
        headers = {} if key is None else {IDEMPOTENCY_KEY_HEADER: check_push_key(key)}
        conn = self.get_conn()
        answer = conn.request("POST", path, params=params, content=body, headers=headers, idempotent=key is not None)
        return PushResult(str(answer["token"]), bool(answer.get("already_there")))

    def completion_token(self, name: str, table: str, connector: str) -> str:
        """Return a token that completes when everything the connector has received so far is processed and delivered.

        :param name: the pipeline's name
        :param table: the table that the connector feeds
        :param connector: the connector's name
        """
        return self.pipeline(name).generate_completion_token(table, connector)

    def query(self, name: str, sql: str, limit: int) -> list[Mapping[str, Any]]:
        """Return the first rows of an ad-hoc query.

        :param name: the pipeline's name
        :param sql: the query
        :param limit: the maximum number of rows
        :returns: each row by the names of its columns; decimals are Decimal
        """
        rows: Iterator[Mapping[str, Any]] = iter(self.pipeline(name).query(sql))
        return list(islice(rows, limit))

    def execute(self, name: str, sql: str) -> None:
        """Run ad-hoc INSERT or DELETE statements.

        :param name: the pipeline's name
        :param sql: the statements
        """
        self.pipeline(name).execute(sql)

    def stats(self, name: str) -> dict[str, Any]:
        """Return the pipeline's statistics, as the service sends them."""
        stats: dict[str, Any] = self.get_conn().request("GET", path_of("pipelines", name, "stats"))
        return stats

    def spark_application(self, name: str) -> dict[str, Any]:
        """Return the Spark application of a running pipeline: ``id``, ``name`` and ``web_url``, the address of Spark's own page.

        :param name: the pipeline's name
        :raises PipelineAPIError: if the pipeline does not run
        """
        path = path_of("pipelines", name, "spark_application")
        application: dict[str, Any] = self.get_conn().request("GET", path, outage_budget_s=0.0)
        return application

    def steps(self, name: str) -> list[dict[str, Any]]:
        """Return the figures of the recent steps: the number of input rows, and for each view how and how long it was computed."""
        answer: Any = self.get_conn().request("GET", path_of("pipelines", name, "steps"))
        steps: Sequence[dict[str, Any]] = answer["steps"] if isinstance(answer, Mapping) else answer
        return list(steps)

    def _builder(
        self,
        name: str,
        sql: str,
        udf_python: str,
        stream_program: StreamProgramSource | None,
        stream_arguments: Sequence[str] | None,
        description: str,
        runtime_config: Mapping[str, Any] | None,
    ) -> PipelineBuilder:
        from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder
        from airflow_pipelines.sdk.runtime_config import RuntimeConfig

        config = RuntimeConfig.from_dict(runtime_config) if runtime_config else RuntimeConfig.default()
        return PipelineBuilder(
            self.get_conn(),
            name=name,
            sql=sql,
            udf_python=udf_python,
            stream_program=stream_program,
            stream_arguments=stream_arguments,
            description=description,
            runtime_config=config,
        )

    def _post(self, name: str, action: str, params: Mapping[str, Any] | None = None) -> None:
        """Send an idempotent request."""
        self.get_conn().request("POST", path_of("pipelines", name, action), params=params, idempotent=True)
