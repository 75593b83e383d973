"""The environment of a program: where streams begin, and how they are run."""

from __future__ import annotations

import logging
import sys
import weakref
from collections import deque
from collections.abc import Collection
from pathlib import Path
from typing import Any

from airflow_pipelines.datastream.checkpoint_config import CheckpointConfig
from airflow_pipelines.datastream.checkpointing_mode import CheckpointingMode
from airflow_pipelines.datastream.collecting import CloseableIterator, CollectSink
from airflow_pipelines.datastream.common.configuration import Configuration
from airflow_pipelines.datastream.common.execution_config import ExecutionConfig
from airflow_pipelines.datastream.common.job_client import JobClient
from airflow_pipelines.datastream.common.job_execution_result import JobExecutionResult
from airflow_pipelines.datastream.common.no_effect import no_effect
from airflow_pipelines.datastream.common.restart_strategy import RestartStrategyConfiguration
from airflow_pipelines.datastream.connectors.file_formats import StreamFormat
from airflow_pipelines.datastream.connectors.file_source import FileSource
from airflow_pipelines.datastream.data_stream import DataStream, Port
from airflow_pipelines.datastream.execution import LocalJob, RunSettings, read_savepoint
from airflow_pipelines.datastream.execution_mode import RuntimeExecutionMode
from airflow_pipelines.datastream.slot_sharing_group import SlotSharingGroup
from airflow_pipelines.datastream.state_backend import StateBackend
from airflow_pipelines.datastream.time_characteristic import TimeCharacteristic
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.failures import user_traceback
from airflow_pipelines.streams.function_source import FunctionSource, SourceFunction
from airflow_pipelines.streams.graph.chains import Defaults, Plan, plan_of
from airflow_pipelines.streams.graph.nodes import Graph, Node, checked_max_parallelism, checked_parallelism
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


class StreamExecutionEnvironment:
    """The program: streams are added to it, and it runs them.

    :param configuration: ``execution.savepoint.path`` names a savepoint to go on from, ``execution.call-time-limit-seconds``
        limits how
        long one call of a function may go on giving results (60 by default)
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self.graph = Graph()
        self._configuration = configuration or Configuration()
        self._config = ExecutionConfig()
        self._checkpoints = CheckpointConfig()
        self._local_parallelism = 1
        self._max_parallelism: int | None = None
        self._mode = RuntimeExecutionMode.STREAMING
        self._chaining = True
        self._buffer_timeout = 100
        self._savepoints: str | None = None
        self._backend: StateBackend | None = None
        self._characteristic = TimeCharacteristic.EventTime
        self._sinks: list[Node] = []
        weakref.finalize(self, _warn_of_unexecuted, self._sinks)

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """The environment of this program.

        :param configuration: settings by their names
        :returns: a new one
        """
        return StreamExecutionEnvironment(configuration)

    # settings

    def get_config(self) -> ExecutionConfig:
        """Settings of the execution.

        :returns: an object to change
        """
        return self._config

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Set the number of tasks of operators that say nothing else.

        :param parallelism: at least 1
        :returns: this environment
        """
        self._config.set_parallelism(checked_parallelism(parallelism))
        return self

    def get_parallelism(self) -> int:
        """The number of tasks of operators that say nothing else.

        :returns: the number
        """
        declared = self._config.get_parallelism()
        return declared if declared > 0 else self._local_parallelism

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Set the number of key groups of operators that say nothing else.

        :param max_parallelism: from 1 to 32768
        :returns: this environment
        """
        self._max_parallelism = checked_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """The number of key groups of operators that say nothing else.

        :returns: the number, -1 when none was set
        """
        return -1 if self._max_parallelism is None else self._max_parallelism

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the number of tasks where :meth:`set_parallelism` was not called.

        :param parallelism: at least 1
        """
        self._local_parallelism = checked_parallelism(parallelism)

    def get_default_local_parallelism(self) -> int:
        """The number of tasks where :meth:`set_parallelism` was not called.

        :returns: 1 unless it was set
        """
        return self._local_parallelism

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """Set whether each update is a result, or the last one of each key.

        :param execution_mode: the mode
        :returns: this environment
        """
        self._mode = execution_mode
        return self

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> StreamExecutionEnvironment:
        """Take checkpoints: sinks commit what was written before, and a restart goes on from there.

        :param interval: ms between them
        :param mode: kept
        :returns: this environment
        """
        self._checkpoints.set_checkpoint_interval(interval)
        self._checkpoints.set_checkpointing_mode(mode or CheckpointingMode.EXACTLY_ONCE)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Settings of checkpoints.

        :returns: an object to change
        """
        return self._checkpoints

    def get_checkpoint_interval(self) -> int:
        """The time between checkpoints.

        :returns: ms, -1 for no checkpoints
        """
        return self._checkpoints.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """The mode of checkpoints.

        :returns: what was set
        """
        return self._checkpoints.get_checkpointing_mode()

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> StreamExecutionEnvironment:
        """Set what follows a failure.

        :param restart_strategy_configuration: the strategy
        :returns: this environment
        """
        self._config.set_restart_strategy(restart_strategy_configuration)
        return self

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """What follows a failure.

        :returns: the strategy
        """
        return self._config.get_restart_strategy()

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Set where savepoints are written.

        :param directory: a folder
        :returns: this environment
        """
        self._savepoints = directory
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Where savepoints are written.

        :returns: the folder, None when none was set
        """
        return self._savepoints

    @no_effect("state is kept in pages of its own")
    def set_state_backend(self, state_backend: StateBackend) -> StreamExecutionEnvironment:
        """Set how state is kept.

        :param state_backend: the backend
        :returns: this environment
        """
        self._backend = state_backend
        return self

    def get_state_backend(self) -> StateBackend | None:
        """What was set with :meth:`set_state_backend`.

        :returns: the backend, None when none was set
        """
        return self._backend

    @no_effect("elements are handed over at the end of each step")
    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """Set how long elements wait to be handed over together.

        :param timeout_millis: ms
        :returns: this environment
        """
        self._buffer_timeout = timeout_millis
        return self

    def get_buffer_timeout(self) -> int:
        """What was set with :meth:`set_buffer_timeout`.

        :returns: ms
        """
        return self._buffer_timeout

    @no_effect("window assigners and timers say which time they mean")
    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> StreamExecutionEnvironment:
        """Set the notion of time.

        :param characteristic: the notion
        :returns: this environment
        """
        self._characteristic = characteristic
        return self

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """What was set with :meth:`set_stream_time_characteristic`.

        :returns: the notion of time
        """
        return self._characteristic

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Let each operator be a chain of its own.

        :returns: this environment
        """
        self._chaining = False
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators are chained.

        :returns: whether they are
        """
        return self._chaining

    @no_effect("all operators of a program share the resources of its pipeline")
    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Describe a group of operators that share resources.

        :param slot_sharing_group: the group
        :returns: this environment
        """
        return self

    @no_effect("values are Python objects and are pickled")
    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> None:
        """Set a serializer for a class of another language.

        :param type_class_name: the class
        :param serializer_class_name: its serializer
        """
        self._config.add_default_kryo_serializer(type_class_name, serializer_class_name)

    @no_effect("values are Python objects and are pickled")
    def register_type_with_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> None:
        """Set a serializer for a class of another language.

        :param type_class_name: the class
        :param serializer_class_name: its serializer
        """
        self._config.register_type_with_kryo_serializer(type_class_name, serializer_class_name)

    @no_effect("values are Python objects and are pickled")
    def register_type(self, type_class_name: str) -> None:
        """Register a class of another language.

        :param type_class_name: the class
        """
        self._config.register_kryo_type(type_class_name)

    @no_effect("a program that runs in its own process has no class path")
    def add_jars(self, *jars_path: str) -> None:
        """Add libraries of another language.

        :param jars_path: their paths
        """

    @no_effect("a program that runs in its own process has no class path")
    def add_classpaths(self, *classpaths: str) -> None:
        """Add places of classes of another language.

        :param classpaths: URLs
        """

    def add_python_file(self, file_path: str) -> None:
        """Let functions import from a file or a folder.

        :param file_path: a module, a folder of modules or a zip file
        :raises StreamProgramError: when it does not exist
        """
        path = Path(file_path).absolute()
        if not path.exists():
            raise StreamProgramError(f"add_python_file: there is no file or folder {file_path}.")
        place = str(path.parent if path.suffix == ".py" else path)
        if place not in sys.path:
            sys.path.append(place)

    @no_effect("a script uses the environment in which it is run")
    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Name the packages that functions need.

        :param requirements_file_path: a requirements file
        :param requirements_cache_dir: a folder of downloaded packages
        """

    @no_effect("a script uses the files of the machine on which it is run")
    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Add an archive that functions find unpacked.

        :param archive_path: the archive
        :param target_dir: the folder to unpack into
        """

    @no_effect("a script uses the interpreter by which it is run")
    def set_python_executable(self, python_exec: str) -> None:
        """Set the interpreter for functions.

        :param python_exec: its path
        """

    # where streams begin

    def from_collection(self, collection: Collection[Any], type_info: Any = None) -> DataStream:
        """A stream of the elements of a collection, which keeps their order.

        :param collection: the elements
        :param type_info: their declared type; optional
        :returns: the stream
        """
        source = CollectionSource([isolate(value) for value in collection])
        return self._add_source(source, None, "Source: Collection Source", type_info, parallelism=1, non_parallel=True)

    def from_source(
        self, source: Source, watermark_strategy: TimestampsAndWatermarks | None, source_name: str, type_info: Any = None
    ) -> DataStream:
        """A stream of what a source gives.

        :param source: the source
        :param watermark_strategy: how its elements get event time
        :param source_name: for people
        :param type_info: their declared type; optional
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
        """A stream of what a source function gives.

        :param source_func: the function object, or a source of a connector
        :param source_name: for people
        :param type_info: their declared type; optional
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
        """A stream of the lines of a file, or of all files of a folder.

        :param file_path: the file or folder
        :param charset_name: its encoding
        :returns: the stream
        """
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset_name), file_path).build()
        return self._add_source(source, None, "Source: Read Text File Source", None)

    def _add_source(
        self, source: Source, event_time: TimestampsAndWatermarks | None, name: str, type_info: Any, **settings: Any
    ) -> DataStream:
        node = self.graph.add(
            name,
            Read(source, event_time),
            [],
            output_type=type_info,
            convert=None if type_info is None else type_info.converter(),
            **settings,
        )
        return DataStream(self, (Port(node),))

    def add_sink_node(self, node: Node) -> None:
        """A node that the next execution runs.

        :param node: a sink
        """
        self._sinks.append(node)

    # how they are run

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run all sinks that were added since the last execution, with all that they need, until their inputs end.

        :param job_name: of the run
        :returns: what is left of it
        :raises StreamProgramError: when there is nothing to run
        """
        plan = self._plan(self._take_sinks())
        try:
            return LocalJob(plan, self._run_settings(plan)).run()
        except BaseException as error:  # noqa: BLE001 (raised again)
            raise error.with_traceback(user_traceback(error.__traceback__)) from error.__cause__

    def execute_async(self, job_name: str = "Stream program") -> JobClient:
        """Run in another thread.

        :param job_name: of the run
        :returns: what can be done with it
        """
        plan = self._plan(self._take_sinks())
        job = LocalJob(plan, self._run_settings(plan))
        job.start()
        return JobClient(job)

    def collect(self, stream: DataStream, name: str | None) -> CloseableIterator:
        """Run the program and bring a stream here.

        :param stream: the stream
        :param name: of the run
        :returns: its elements
        """
        sink = CollectSink()
        stream.sink_to(sink).name("Sink: Collect")
        plan = self._plan(self._take_sinks())
        runner = LocalRunner(plan, self._task_settings(plan), snapshot=self._start())

        def take() -> deque[Any] | None:
            try:
                while not sink.values:
                    if runner.has_ended:
                        runner.finish()
                        return None
                    runner.step_or_wait()
            except BaseException as error:  # noqa: BLE001 (raised again)
                runner.abort()
                raise error.with_traceback(user_traceback(error.__traceback__)) from error.__cause__
            return sink.values

        return CloseableIterator(take, runner.close)

    def get_execution_plan(self) -> str:
        """The operators that the next execution runs.

        :returns: JSON with a list ``nodes``
        """
        return plan_json(self.graph, [sink.id for sink in self._sinks], self._defaults())

    def explain(self) -> str:
        """The chains that the next execution runs, and what they read.

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
        return Defaults(self.get_parallelism(), self._max_parallelism, self._chaining)

    def _plan(self, sinks: list[Node]) -> Plan:
        return plan_of(self.graph, [sink.id for sink in sinks], self._defaults())

    def _start(self) -> Any:
        path = self._configuration.get_string(SAVEPOINT_PATH)
        return None if path is None else read_savepoint(path)

    def _run_settings(self, plan: Plan) -> RunSettings:
        tasks = self._task_settings(plan)
        return RunSettings(
            tasks=tasks,
            checkpoint_interval=0 if tasks.is_batch else max(0, self.get_checkpoint_interval()),
            restarts=self.get_restart_strategy(),
            savepoints=self._savepoints,
            start=self._start(),
        )

    def _task_settings(self, plan: Plan) -> TaskSettings:
        unbounded = [chain.head.name for chain in plan.chains if not chain.head.node.inputs and not chain.head.is_input_bounded]
        if self._mode is RuntimeExecutionMode.BATCH and unbounded:
            raise StreamProgramError(
                f"The program runs in BATCH mode, and its source {unbounded[0]!r} does not end. Use STREAMING, or a source that"
                f" ends."
            )
        is_batch = self._mode is RuntimeExecutionMode.BATCH or (self._mode is RuntimeExecutionMode.AUTOMATIC and not unbounded)
        return TaskSettings(
            is_batch=is_batch,
            watermark_interval=self._config.get_auto_watermark_interval(),
            share_values=self._config.is_object_reuse_enabled(),
            call_seconds=self._configuration.get_float(CALL_SECONDS, 60.0),
            job_parameters=self._config.get_global_job_parameters(),
        )


def _warn_of_unexecuted(sinks: list[Node]) -> None:
    if sinks:
        names = ", ".join(repr(node.name) for node in sinks)
        _log.warning("A stream program ended and its sinks %s never ran: call execute() after adding them.", names)
