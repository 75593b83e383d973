"""The settings of the environment of a program."""

from __future__ import annotations

from typing import Self

from airflow_pipelines.datastream.checkpoint_config import CheckpointConfig
from airflow_pipelines.datastream.checkpointing_mode import CheckpointingMode
from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.execution_config import ExecutionConfig
from airflow_pipelines.datastream.common.no_effect import no_effect
from airflow_pipelines.datastream.common.restart_strategy import RestartStrategyConfiguration
from airflow_pipelines.datastream.execution_mode import RuntimeExecutionMode
from airflow_pipelines.datastream.python_dependencies import PythonDependencies, existing
from airflow_pipelines.datastream.slot_sharing_group import SlotSharingGroup
from airflow_pipelines.datastream.state_backend import StateBackend
from airflow_pipelines.datastream.time_characteristic import TimeCharacteristic
from airflow_pipelines.streams.python_environment.needs import CachedFile

_NO_JVM_CLASSES = "classes of the JVM are not loaded"
_NO_KRYO = "values are Python objects, which the JVM does not serialize"


class EnvironmentSettings:
    """The settings of an environment, apart from the streams that it runs."""

    def __init__(self) -> None:
        self._config = ExecutionConfig()
        self._checkpoint_config = CheckpointConfig()
        self._runtime_mode = RuntimeExecutionMode.STREAMING
        self._chaining = True
        self._local_parallelism = 1
        self._state_backend: StateBackend | None = None
        self._savepoint_directory: str | None = None
        self._buffer_timeout = 100
        self._time_characteristic = TimeCharacteristic.EventTime
        self._slot_sharing_groups: dict[str, SlotSharingGroup] = {}
        self._jars: list[str] = []
        self._classpaths: list[str] = []
        self._dependencies = PythonDependencies()

    def get_config(self) -> ExecutionConfig:
        """Return the execution settings of the program.

        :returns: the live object; changes to it take effect
        """
        return self._config

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Return the configuration of checkpoints.

        :returns: the live object; changes to it take effect
        """
        return self._checkpoint_config

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of tasks of operators that set none.

        :param parallelism: at least 1
        :returns: this environment
        """
        self._config.set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """Return the number of tasks of operators that set none.

        :returns: the value that was set; the default local parallelism if none was
        """
        set_ = self._config.get_parallelism()
        return self._local_parallelism if set_ == ExecutionConfig.PARALLELISM_DEFAULT else set_

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the number of key groups, which cannot change once there is state.

        :param max_parallelism: 1 to 32767
        :returns: this environment
        """
        self._config.set_max_parallelism(max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Return the number of key groups.

        :returns: the value that was set; -1 for the default
        """
        return self._config.get_max_parallelism()

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the number of tasks for a program that sets no parallelism.

        :param parallelism: at least 1
        """
        self._local_parallelism = checks.integer("parallelism", parallelism, 1, ExecutionConfig.MAX_PARALLELISM)

    def get_default_local_parallelism(self) -> int:
        """Return the number of tasks for a program that sets no parallelism.

        :returns: the value that was set; 1 by default
        """
        return self._local_parallelism

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Set whether the program emits every update, or only final results.

        :param execution_mode: the mode; ``STREAMING`` by default
        :returns: this environment
        """
        self._runtime_mode = checks.member("execution_mode", execution_mode, RuntimeExecutionMode)
        return self

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None) -> Self:
        """Enable checkpoints.

        :param interval: milliseconds between two of them, at least 10
        :param mode: the guarantee of checkpoints; exactly once by default
        :returns: this environment
        """
        self._checkpoint_config.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """Return the time between two checkpoints.

        :returns: milliseconds; -1 if none are taken
        """
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the guarantee of checkpoints.

        :returns: exactly once by default
        """
        return self._checkpoint_config.get_checkpointing_mode()

    @no_effect("state is always held by RocksDB, and in memory while there is little")
    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Set the state backend.

        :param state_backend: the state backend
        :returns: this environment
        """
        self._state_backend = checks.instance("state_backend", state_backend, StateBackend, "use HashMapStateBackend()")
        return self

    def get_state_backend(self) -> StateBackend | None:
        """Return the state backend.

        :returns: the value that was set; None by default
        """
        return self._state_backend

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> None:
        """Set the restart strategy for failures of the program.

        :param restart_strategy_configuration: a strategy from ``RestartStrategies``
        """
        self._config.set_restart_strategy(restart_strategy_configuration)

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """Return the restart strategy for failures of the program.

        :returns: the strategy that was set; by default, the strategy of the runner
        """
        return self._config.get_restart_strategy()

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Set the folder for savepoints that name none.

        :param directory: the folder
        :returns: this environment
        """
        self._savepoint_directory = checks.text("directory", directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Return the folder for savepoints that name none.

        :returns: the value that was set; None by default
        """
        return self._savepoint_directory

    @no_effect("elements are handed over at the end of each step")
    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Set the maximum time that elements wait before they are handed over.

        :param timeout_millis: milliseconds; 0 to hand over each element, -1 to wait until a buffer is full
        :returns: this environment
        """
        self._buffer_timeout = checks.integer("timeout_millis", timeout_millis, -1)
        return self

    def get_buffer_timeout(self) -> int:
        """Return the maximum time that elements wait before they are handed over.

        :returns: milliseconds, 100 by default
        """
        return self._buffer_timeout

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> None:
        """Set the notion of time. Processing time disables periodic watermarks; the others enable them.

        :param characteristic: the notion of time; event time by default
        """
        self._time_characteristic = checks.member("characteristic", characteristic, TimeCharacteristic)
        self._config.set_auto_watermark_interval(0 if characteristic is TimeCharacteristic.ProcessingTime else 200)

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """Return the notion of time.

        :returns: the value that was set; event time by default
        """
        return self._time_characteristic

    def disable_operator_chaining(self) -> Self:
        """Disable operator chaining, so that no operator calls the next one directly.

        :returns: this environment
        """
        self._chaining = False
        return self

    def is_chaining_enabled(self) -> bool:
        """Return True if operators call each other directly where they can.

        :returns: True by default
        """
        return self._chaining

    @no_effect("all operators of a program share the resources of its pipeline")
    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Register the resources of a slot sharing group.

        :param slot_sharing_group: the group with its name and resources
        :returns: this environment
        """
        group = checks.instance("slot_sharing_group", slot_sharing_group, SlotSharingGroup, "use SlotSharingGroup.builder(name)")
        self._slot_sharing_groups[group.get_name()] = group
        return self

    def add_python_file(self, file_path: str) -> None:
        """Add a module, a package or an archive of packages that functions can import.

        :param file_path: a file ``.py``, ``.zip``, ``.whl`` or ``.egg``, or a folder
        :raises FileNotFoundError: if it does not exist
        """
        self._dependencies.files.append(existing("file_path", checks.text("file_path", file_path)))

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Set the requirements file of packages to install for functions. The same requirements are installed once.

        :param requirements_file_path: a file in pip's format
        :param requirements_cache_dir: folder with the packages, to install them without a network
        :raises FileNotFoundError: if one of them does not exist
        """
        file = existing("requirements_file_path", checks.text("requirements_file_path", requirements_file_path))
        folder = None if requirements_cache_dir is None else existing("requirements_cache_dir", requirements_cache_dir)
        self._dependencies.requirements = (file, folder)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Add an archive to unpack into the working folder of functions.

        :param archive_path: a zip or tar file
        :param target_dir: the name of the folder to unpack it into; the name of the file if None
        :raises FileNotFoundError: if there is no such file
        """
        archive = existing("archive_path", checks.text("archive_path", archive_path))
        self._dependencies.archives.append((archive, archive.name if target_dir is None else checks.text("target_dir", target_dir)))

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Register a file or folder that functions find by a name, wherever they run.

        They ask for it with ``runtime_context.get_distributed_cache().get_file(name)``.

        :param file_path: the file or folder
        :param name: the name
        :param executable: True if functions execute it
        :raises FileNotFoundError: if it does not exist
        """
        path = existing("file_path", checks.text("file_path", file_path))
        file = CachedFile(path, checks.text("name", name), checks.boolean("executable", executable))
        if any(known.name == name for known in self._dependencies.cached_files):
            raise ValueError(f"A file is registered with the name {name!r} already: give each a name of its own")
        self._dependencies.cached_files.append(file)

    def set_python_executable(self, python_exec: str) -> None:
        """Set the interpreter for functions.

        A program that runs in its own process keeps the interpreter that runs it, and logs a warning.

        :param python_exec: the path of the interpreter, which may be in an archive
        """
        self._dependencies.executable = checks.text("python_exec", python_exec)

    @no_effect(_NO_JVM_CLASSES)
    def add_jars(self, *jars_path: str) -> None:
        """Add files of Java classes.

        :param jars_path: the URLs of the files
        """
        self._jars += [checks.text("jars_path", path) for path in jars_path]

    @no_effect(_NO_JVM_CLASSES)
    def add_classpaths(self, *classpaths: str) -> None:
        """Add folders of Java classes.

        :param classpaths: the URLs of the folders, such as ``file:///opt/classes``
        :raises ValueError: if one has no scheme
        """
        for path in classpaths:
            if "://" not in checks.text("classpaths", path):
                raise ValueError(f"classpaths takes URLs with a scheme such as 'file://{path}', not {path!r}")
        self._classpaths += classpaths

    @no_effect(_NO_KRYO)
    def add_default_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> None:
        """Set the serializer of a Java class and its subclasses.

        :param type_class_name: the class
        :param serializer_class_name: the class of the serializer
        """
        self._config.kryo.set_default(type_class_name, serializer_class_name)

    @no_effect(_NO_KRYO)
    def register_type_with_kryo_serializer(self, type_class_name: str, serializer_class_name: str) -> None:
        """Set the serializer of a Java class.

        :param type_class_name: the class
        :param serializer_class_name: the class of the serializer
        """
        self._config.kryo.register(type_class_name, serializer_class_name)

    @no_effect(_NO_KRYO)
    def register_type(self, type_class_name: str) -> None:
        """Register a Java class.

        :param type_class_name: the class
        """
        self._config.kryo.register(type_class_name)
