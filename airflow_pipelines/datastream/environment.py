"""The environment of a program, which creates streams and runs them."""

from __future__ import annotations

import logging
import re
import weakref
from collections import deque
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from airflow_pipelines.datastream.bound_job import BoundJob, refuse_results, refuse_savepoint
from airflow_pipelines.datastream.collecting import CloseableIterator, CollectSink
from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.configuration import Configuration
from airflow_pipelines.datastream.common.job_client import JobClient
from airflow_pipelines.datastream.common.job_execution_result import JobExecutionResult
from airflow_pipelines.datastream.common.job_id import JobID
from airflow_pipelines.datastream.common.restart_strategy import policy_of
from airflow_pipelines.datastream.common.type_information import converter_of
from airflow_pipelines.datastream.configured import configure
from airflow_pipelines.datastream.connectors import base as connectors
from airflow_pipelines.datastream.connectors.file_formats import StreamFormat
from airflow_pipelines.datastream.connectors.file_source import FileSource
from airflow_pipelines.datastream.data_stream import DataStream
from airflow_pipelines.datastream.environment_settings import EnvironmentSettings
from airflow_pipelines.datastream.execution import LocalJob, RunSettings
from airflow_pipelines.datastream.execution_mode import RuntimeExecutionMode
from airflow_pipelines.datastream.formats.avro import AvroInputFormat
from airflow_pipelines.datastream.progress import progress_line
from airflow_pipelines.datastream.relations import relation_source
from airflow_pipelines.datastream.snapshot_files import read_savepoint
from airflow_pipelines.datastream.stream_settings import Port
from airflow_pipelines.program.streams import StreamRun
from airflow_pipelines.streams.deploying import binding
from airflow_pipelines.streams.deploying.description import Execution, describe_run
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import user_traceback
from airflow_pipelines.streams.function_source import FunctionSource, SourceFunction
from airflow_pipelines.streams.graph.chains import Defaults, Plan, plan_of
from airflow_pipelines.streams.graph.nodes import Graph, Node
from airflow_pipelines.streams.graph.plan import explain, plan_json
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.operators.source import Read
from airflow_pipelines.streams.sources import CollectionSource, Source
from airflow_pipelines.streams.values import isolate
from airflow_pipelines.streams.watermarks import TimestampsAndWatermarks

_log = logging.getLogger("airflow_pipelines.datastream")
SAVEPOINT_PATH = "execution.savepoint.path"
CALL_SECONDS = "execution.call-time-limit-seconds"
HOT_KEYS = "execution.state.hot-keys"
HOT_BYTES = "execution.state.hot-memory"
CACHE_BYTES = "execution.state.page-memory"
SCRATCH_FOLDERS = "io.tmp.dirs"
JOB_NAME = "pipeline.name"
_OWN_SETTINGS = frozenset({SAVEPOINT_PATH, CALL_SECONDS, HOT_KEYS, HOT_BYTES, CACHE_BYTES, SCRATCH_FOLDERS, JOB_NAME})


class StreamExecutionEnvironment(EnvironmentSettings):
    """The environment of a program: streams are added to it, and it runs them.

    :param configuration: settings by their names in Flink, such as ``execution.runtime-mode`` or ``parallelism.default``; settings
        that the program makes later override them. ``execution.savepoint.path`` names a savepoint to start from.
        ``execution.call-time-limit-seconds`` limits the time that one call of a function may yield results (60 by default). Between
        two steps, at most ``execution.state.hot-memory`` bytes of state by key are objects in memory (640 MiB by default), in each
        task of an operator at most ``execution.state.hot-keys`` keys; the rest is in a database in the first folder of
        ``io.tmp.dirs``, which has ``execution.state.page-memory`` bytes of its files in memory (64 MiB by default)
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        super().__init__()
        self.graph = Graph()
        self._configuration = configuration or Configuration()
        configure(self, self._configuration, _OWN_SETTINGS)
        self._sinks: list[Node] = []
        weakref.finalize(self, _warn_of_unexecuted, self._sinks)

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """Return an environment for this program.

        :param configuration: settings by their names
        :returns: a new environment
        """
        return StreamExecutionEnvironment(configuration)

    # creation of streams

    def from_collection(self, collection: Collection[Any], type_info: Any = None) -> DataStream:
        """Return a stream of the elements of a collection, in their order.

        :param collection: the elements
        :param type_info: their declared type; optional
        :returns: the stream
        """
        if not isinstance(collection, Iterable):
            raise StreamProgramError(f"from_collection() needs a collection such as a list, and was given {collection!r}.")
        source = CollectionSource([isolate(value) for value in collection])
        return self._add_source(source, None, "Source: Collection Source", type_info, parallelism=1, non_parallel=True)

    def from_source(
        self, source: Source, watermark_strategy: TimestampsAndWatermarks | None, source_name: str, type_info: Any = None
    ) -> DataStream:
        """Return a stream of the elements that a source reads.

        :param source: the source
        :param watermark_strategy: the strategy that assigns event time to the elements
        :param source_name: the name of the source, for people
        :param type_info: declared type of the elements; optional
        :returns: the stream
        """
        if not isinstance(source, Source):
            raise StreamProgramError(
                f"from_source() needs a Source, and was given {source!r}. A SourceFunction goes to add_source()."
            )
        return self._add_source(source, watermark_strategy, f"Source: {source_name}", type_info)

    def add_source(
        self, source_func: SourceFunction | Source, source_name: str = "Custom Source", type_info: Any = None
    ) -> DataStream:
        """Return a stream of the elements that a source function emits.

        :param source_func: the function object, or a source of a connector
        :param source_name: the name of the source, for people
        :param type_info: declared type of the elements; optional
        :returns: the stream
        """
        if isinstance(source_func, Source):
            return self.from_source(source_func, None, source_name, type_info)
        if not isinstance(source_func, SourceFunction):
            raise StreamProgramError(f"add_source() needs a SourceFunction, and was given {source_func!r}.")
        return self._add_source(
            FunctionSource(source_func), None, f"Source: {source_name}", type_info, parallelism=1, non_parallel=True
        )

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """Return a stream of the lines of a file, or of all files of a folder.

        :param file_path: the file or folder
        :param charset_name: its encoding
        :returns: the stream
        """
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset_name), file_path).build()
        return self._add_source(source, None, "Source: Read Text File Source", None)

    def create_input(self, input_format: AvroInputFormat) -> DataStream:
        """Return a stream of the records of the files of an input format.

        :param input_format: the format with the path of the files
        :returns: the stream
        """
        checks.instance("input_format", input_format, AvroInputFormat, "other formats go to FileSource.for_bulk_file_format()")
        source = FileSource.for_bulk_file_format(input_format, input_format.path).build()
        return self._add_source(source, None, "Source: Custom Source", None)

    def from_relation(self, name: str, type_info: Any = None, changes: bool = False, stays_open: bool = False) -> DataStream:
        """Return a stream of the rows of a table or view of the pipeline that the program is deployed in.

        The stream ends when all connectors of the underlying tables have ended, if each of these tables has one.

        :param name: the name of the table or view, as in SQL
        :param type_info: declared type of the rows; optional
        :param changes: True to include rows that the relation loses, with the kind ``DELETE``; otherwise the relation must be one
            that never loses a row
        :param stays_open: True to keep the stream open after the connectors have ended, as for rows that are pushed later
        :returns: a stream of ``Row`` with the names of the columns
        """
        source = relation_source(name, with_changes=changes, stays_open=stays_open)
        return self._add_source(source, None, f"Source: {source.relation}", type_info, parallelism=1, non_parallel=True)

    def _add_source(
        self, source: Source, event_time: TimestampsAndWatermarks | None, name: str, type_info: Any, **settings: Any
    ) -> DataStream:
        # The type that a source reports is trusted; the type that the program declares coerces the values.
        produced = source.get_produced_type() if isinstance(source, connectors.Source) else None
        node = self.graph.add(
            name,
            Read(source, event_time),
            [],
            output_type=type_info or produced,
            convert=None if type_info is None else converter_of("type_info", type_info),
            **settings,
        )
        return DataStream(self, (Port(node),))

    def add_sink_node(self, node: Node) -> None:
        """Add a sink to the next execution.

        :param node: the node of the sink
        """
        self._sinks.append(node)

    # execution

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run all sinks that were added since the last execution, with their inputs, until the inputs end.

        :param job_name: the name of the run
        :returns: the result of the run
        :raises StreamProgramError: if there is nothing to run
        """
        job_name = job_name or self._configuration.get_string(JOB_NAME)
        if binding.is_binding():
            self._bind(job_name)
            return JobExecutionResult(JobID.generate(), 0)
        plan = self._plan(self._take_sinks())
        settings = self._run_settings(plan)
        try:
            with progress_line(job_name) as progress:
                return self._job(plan, settings).run(progress.update)
        except BaseException as error:  # noqa: BLE001 (raised again)
            raise error.with_traceback(user_traceback(error)) from error.__cause__

    def execute_async(self, job_name: str = "Stream program") -> JobClient:
        """Run the program in another thread.

        :param job_name: the name of the run
        :returns: a client that controls the run
        """
        if binding.is_binding():
            self._bind(job_name)
            return JobClient(BoundJob())
        plan = self._plan(self._take_sinks())
        job = self._job(plan, self._run_settings(plan))
        job.start()
        return JobClient(job)

    def _job(self, plan: Plan, settings: RunSettings) -> LocalJob:
        return LocalJob(plan, settings, self._dependencies.in_this_process())

    def collect(self, stream: DataStream, name: str | None) -> CloseableIterator:
        """Run the program and bring the elements of a stream to this process.

        :param stream: the stream
        :param name: the name of the run
        :returns: its elements
        """
        if binding.is_binding():
            refuse_results("execute_and_collect()")
        sink = CollectSink()
        # One task preserves the order of elements.
        stream.sink_to(sink).name("Sink: Collect").set_parallelism(1)
        plan = self._plan(self._take_sinks())
        settings, start = self._task_settings(plan), self._start()
        with ExitStack() as stack:
            stack.enter_context(self._dependencies.in_this_process())
            runner = LocalRunner(plan, settings, snapshot=start)
            dependencies = stack.pop_all()

        def take() -> deque[Any] | None:
            try:
                while not sink.values:
                    if runner.has_ended:
                        runner.finish()
                        return None
                    runner.step_or_wait()
            except BaseException as error:  # noqa: BLE001 (raised again)
                with dependencies:
                    runner.abort()
                raise error.with_traceback(user_traceback(error)) from error.__cause__
            return sink.values

        def close() -> None:
            with dependencies:
                runner.close()

        return CloseableIterator(take, close)

    def get_execution_plan(self) -> str:
        """Return the operators that the next execution runs.

        :returns: JSON with a list ``nodes``
        """
        return plan_json(self.graph, [sink.id for sink in self._sinks], self._defaults())

    def explain(self) -> str:
        """Describe the chains that the next execution runs, and their inputs.

        :returns: some lines of text
        """
        return explain(self._plan(self._sinks))

    def _take_sinks(self) -> list[Node]:
        if not self._sinks:
            raise StreamProgramError(
                "There is nothing to execute: no sink was added since the last execution. End a stream with print(),"
                " sink_to(...) or execute_and_collect()."
            )
        sinks = list(self._sinks)
        self._sinks.clear()
        return sinks

    def _defaults(self) -> Defaults:
        most = self.get_max_parallelism()
        return Defaults(self.get_parallelism(), None if most < 1 else most, self.is_chaining_enabled())

    def _plan(self, sinks: list[Node]) -> Plan:
        return plan_of(self.graph, [sink.id for sink in sinks], self._defaults())

    def _bind(self, name: str | None) -> None:
        binding.note_execution()
        if (savepoint := self._configuration.get_string(SAVEPOINT_PATH)) is not None:
            refuse_savepoint(SAVEPOINT_PATH, savepoint)
        sinks = self._take_sinks()
        plan = self._plan(sinks)
        if self._runtime_mode is not RuntimeExecutionMode.STREAMING:
            binding.warn(
                f"The program asks for {self._runtime_mode.name} mode. Deployed as a pipeline it runs in STREAMING mode, which"
                " gives each update and not final results only."
            )
        settings = replace(self._task_settings(plan), is_batch=False)
        execution_plan = plan_json(self.graph, [sink.id for sink in sinks], self._defaults())
        binding.bind_execution(
            Execution(name or "", plan, settings, execution_plan, self._dependencies.needs(), self._describe_run())
        )

    def _describe_run(self) -> StreamRun:
        return describe_run(policy_of(self.get_restart_strategy()), self._pause_between_checkpoints() or None)

    def _start(self) -> Any:
        path = self._configuration.get_string(SAVEPOINT_PATH)
        return None if path is None else read_savepoint(path)

    def _run_settings(self, plan: Plan) -> RunSettings:
        tasks = self._task_settings(plan)
        return RunSettings(
            tasks=tasks,
            checkpoint_interval=0 if tasks.is_batch else self._pause_between_checkpoints(),
            checkpoints=self._checkpoint_config,
            restarts=policy_of(self.get_restart_strategy()),
            savepoints=self._savepoint_directory,
            start=self._start(),
        )

    def _pause_between_checkpoints(self) -> int:
        config = self._checkpoint_config
        if not config.is_checkpointing_enabled():
            return 0
        return max(config.get_checkpoint_interval(), config.get_min_pause_between_checkpoints())

    def _task_settings(self, plan: Plan) -> TaskSettings:
        unbounded = [chain.head.name for chain in plan.chains if not chain.head.node.inputs and not chain.head.is_input_bounded]
        if self._runtime_mode is RuntimeExecutionMode.BATCH and unbounded:
            raise StreamProgramError(
                f"The program runs in BATCH mode, and its source {unbounded[0]!r} does not end. Use STREAMING, or a source that"
                f" ends."
            )
        is_batch = self._runtime_mode is RuntimeExecutionMode.BATCH or (
            self._runtime_mode is RuntimeExecutionMode.AUTOMATIC and not unbounded
        )
        return TaskSettings(
            is_batch=is_batch,
            watermark_interval=self._config.get_auto_watermark_interval(),
            share_values=self._config.is_object_reuse_enabled(),
            call_seconds=self._configuration.get_float(CALL_SECONDS, 60.0),
            job_parameters=self._config.get_global_job_parameters(),
            hot_keys=None if self._configuration.get_string(HOT_KEYS) is None else self._limit(HOT_KEYS, 0),
            hot_bytes=self._limit(HOT_BYTES, TaskSettings.hot_bytes),
            cache_bytes=self._limit(CACHE_BYTES, TaskSettings.cache_bytes),
            scratch_folder=_find_first_folder(self._configuration.get_string(SCRATCH_FOLDERS)),
        )

    def _limit(self, key: str, default: int) -> int:
        number = self._configuration.get_integer(key, default)
        if number < 0:
            raise StreamProgramError(f"The setting {key} is {number}: it must be at least 0.")
        return number


def _find_first_folder(folders: str | None) -> str | None:
    """Return the first of some folders, separated as in the setting that names them; None if there are none."""
    return next((folder.strip() for folder in re.split(r"[,|:]", folders or "") if folder.strip()), None)


def _warn_of_unexecuted(sinks: list[Node]) -> None:
    if sinks:
        names = ", ".join(repr(node.name) for node in sinks)
        _log.warning("A stream program ended and its sinks %s never ran: call execute() after adding them.", names)
