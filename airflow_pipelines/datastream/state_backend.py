"""The state backends that a program can choose. State is always held by RocksDB, in memory while there is little."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar

from airflow_pipelines.datastream.checkpoint_storage import FileSystemCheckpointStorage, JobManagerCheckpointStorage
from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.no_effect import no_effect

_NO_ROCKSDB = "the settings of RocksDB are those of the program, execution.state.page-memory among them"
_DEFAULT_TRANSFER_THREADS = 4


class StateBackend:
    """The base class of state backends.

    >>> from airflow_pipelines.datastream import HashMapStateBackend, StateBackend, StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_state_backend(HashMapStateBackend())
    >>> isinstance(env.get_state_backend(), StateBackend)
    True
    """


class HashMapStateBackend(StateBackend):
    """A state backend in memory.

    >>> from airflow_pipelines.datastream import HashMapStateBackend, StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_state_backend(HashMapStateBackend())
    >>> isinstance(env.get_state_backend(), HashMapStateBackend)
    True
    """


class CustomStateBackend(StateBackend):
    """A state backend written in Java.

    :param state_backend: any object that names it

    >>> from airflow_pipelines.datastream import CustomStateBackend, StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.set_state_backend(CustomStateBackend("org.example.OurBackend")).get_state_backend().state_backend
    'org.example.OurBackend'
    """

    @no_effect("classes of the JVM are not loaded")
    def __init__(self, state_backend: Any) -> None:
        self.state_backend = state_backend


class PredefinedOptions(Enum):
    """The predefined settings of RocksDB for kinds of disks.

    >>> from airflow_pipelines.datastream import EmbeddedRocksDBStateBackend, PredefinedOptions
    >>> backend = EmbeddedRocksDBStateBackend()
    >>> backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    >>> backend.get_predefined_options().name
    'FLASH_SSD_OPTIMIZED'
    """

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class _RocksDBSettings(StateBackend):
    """The settings that both state backends on RocksDB share."""

    def __init__(self, enable_incremental_checkpointing: bool | None) -> None:
        incremental = False if enable_incremental_checkpointing is None else enable_incremental_checkpointing
        self._incremental = checks.boolean("enable_incremental_checkpointing", incremental)
        self._paths: list[str] | None = None
        self._predefined = PredefinedOptions.DEFAULT
        self._options: str | None = None
        self._transfer_threads = _DEFAULT_TRANSFER_THREADS

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Return True if a checkpoint writes only changes, which is always the case here regardless of the setting.

        :returns: the value that was set; False by default
        """
        return self._incremental

    def get_db_storage_paths(self) -> list[str] | None:
        """Return the folders for the files of RocksDB.

        :returns: the value that was set; None by default
        """
        return self._paths

    @no_effect(_NO_ROCKSDB)
    def set_db_storage_paths(self, *paths: str | None) -> None:
        """Set the folders for the files of RocksDB.

        :param paths: absolute paths; a single None for the default
        """
        if not paths:
            raise ValueError("set_db_storage_paths takes at least one path, or None for the default")
        self._paths = None if paths == (None,) else [checks.absolute_path("paths", path) for path in paths]

    def get_predefined_options(self) -> PredefinedOptions:
        """Return the settings of RocksDB for a kind of disk.

        :returns: the value that was set; ``DEFAULT`` by default
        """
        return self._predefined

    @no_effect(_NO_ROCKSDB)
    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Set the settings of RocksDB for a kind of disk.

        :param options: the settings
        """
        self._predefined = checks.member("options", options, PredefinedOptions)

    def get_options(self) -> str | None:
        """Return the name of the class that makes options of RocksDB.

        :returns: the name that was set, None by default
        """
        return self._options

    @no_effect(_NO_ROCKSDB)
    def set_options(self, options_factory_class_name: str) -> None:
        """Set the class that makes options of RocksDB.

        :param options_factory_class_name: the name of the Java class
        """
        self._options = checks.text("options_factory_class_name", options_factory_class_name)

    def _set_threads(self, number: int) -> None:
        self._transfer_threads = checks.integer("number_of_transfering_threads", number, 1)


class EmbeddedRocksDBStateBackend(_RocksDBSettings):
    """A state backend on RocksDB.

    :param enable_incremental_checkpointing: True if a checkpoint writes only changes

    >>> from airflow_pipelines.datastream import EmbeddedRocksDBStateBackend, StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_state_backend(EmbeddedRocksDBStateBackend(True))
    >>> env.get_state_backend().is_incremental_checkpoints_enabled()
    True
    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        super().__init__(enable_incremental_checkpointing)

    def get_number_of_transfer_threads(self) -> int:
        """Return the number of threads that transfer files.

        :returns: the value that was set; 4 by default
        """
        return self._transfer_threads

    @no_effect(_NO_ROCKSDB)
    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Set the number of threads that transfer files.

        :param number_of_transfering_threads: at least 1
        """
        self._set_threads(number_of_transfering_threads)


class MemoryStateBackend(StateBackend):
    """A state backend with state and checkpoints in memory.

    It is outdated: use ``HashMapStateBackend`` and ``JobManagerCheckpointStorage``.

    :param checkpoint_path: base folder of checkpoints, None for none
    :param savepoint_path: base folder of savepoints, None for none
    :param max_state_size: the maximum number of bytes of one state
    :param using_asynchronous_snapshots: True to write checkpoints asynchronously

    >>> from airflow_pipelines.datastream import MemoryStateBackend, StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_state_backend(MemoryStateBackend(max_state_size=1_000_000))
    >>> env.get_state_backend().get_max_state_size()
    1000000
    """

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = 5 * 1024 * 1024

    def __init__(
        self,
        checkpoint_path: str | None = None,
        savepoint_path: str | None = None,
        max_state_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        self._storage = JobManagerCheckpointStorage(checkpoint_path, max_state_size)
        self._savepoint_path = None if savepoint_path is None else checks.text("savepoint_path", savepoint_path)
        self._asynchronous = _asynchronous(using_asynchronous_snapshots)

    def get_max_state_size(self) -> int:
        """Return the maximum number of bytes of one state. The value is kept, and not enforced.

        :returns: bytes
        """
        return self._storage.get_max_state_size()

    def is_using_asynchronous_snapshots(self) -> bool:
        """Return True if checkpoints are written asynchronously.

        :returns: the value that was set; True by default
        """
        return self._asynchronous


class FsStateBackend(StateBackend):
    """A state backend with state in memory and checkpoints as files.

    It is outdated: use ``HashMapStateBackend`` and ``FileSystemCheckpointStorage``.

    :param checkpoint_directory_uri: base folder of checkpoints
    :param default_savepoint_directory_uri: base folder of savepoints, None for none
    :param file_state_size_threshold: the number of bytes below which state would be stored with the metadata; kept, without effect
    :param write_buffer_size: the number of bytes to write at once; kept, without effect
    :param using_asynchronous_snapshots: True to write checkpoints asynchronously

    >>> from airflow_pipelines.datastream import FsStateBackend, StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.set_state_backend(FsStateBackend("file:///var/lib/checkpoints")).get_state_backend().get_checkpoint_path()
    'file:///var/lib/checkpoints'
    """

    def __init__(
        self,
        checkpoint_directory_uri: str | None = None,
        default_savepoint_directory_uri: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int | None = None,
        using_asynchronous_snapshots: bool | None = None,
    ) -> None:
        if checkpoint_directory_uri is None:
            raise ValueError("FsStateBackend needs checkpoint_directory_uri, a folder such as 'file:///var/lib/checkpoints'")
        self._storage = FileSystemCheckpointStorage(
            checkpoint_directory_uri, file_state_size_threshold, -1 if write_buffer_size is None else write_buffer_size
        )
        uri = default_savepoint_directory_uri
        self._savepoint_directory = None if uri is None else checks.text("default_savepoint_directory_uri", uri)
        self._asynchronous = _asynchronous(using_asynchronous_snapshots)

    def get_checkpoint_path(self) -> str:
        """Return the base folder of checkpoints.

        :returns: the path
        """
        return self._storage.get_checkpoint_path()

    def get_min_file_size_threshold(self) -> int:
        """Return the number of bytes below which state would be stored with the metadata.

        :returns: bytes
        """
        return self._storage.get_min_file_size_threshold()

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes to write at once.

        :returns: bytes
        """
        return self._storage.get_write_buffer_size()

    def is_using_asynchronous_snapshots(self) -> bool:
        """Return True if checkpoints are written asynchronously.

        :returns: the value that was set; True by default
        """
        return self._asynchronous


class RocksDBStateBackend(_RocksDBSettings):
    """A state backend on RocksDB with checkpoints as files.

    It is outdated: use ``EmbeddedRocksDBStateBackend`` and a checkpoint storage.

    :param checkpoint_data_uri: base folder of checkpoints
    :param enable_incremental_checkpointing: True if a checkpoint writes only changes
    :param checkpoint_stream_backend: the state backend that names the folder of checkpoints, instead of ``checkpoint_data_uri``

    >>> from airflow_pipelines.datastream import RocksDBStateBackend
    >>> RocksDBStateBackend("file:///var/lib/checkpoints").get_checkpoint_backend().get_checkpoint_path()
    'file:///var/lib/checkpoints'
    """

    def __init__(
        self,
        checkpoint_data_uri: str | None = None,
        enable_incremental_checkpointing: bool | None = None,
        checkpoint_stream_backend: StateBackend | None = None,
    ) -> None:
        super().__init__(enable_incremental_checkpointing)
        if (checkpoint_data_uri is None) == (checkpoint_stream_backend is None):
            raise ValueError(
                "RocksDBStateBackend needs one of checkpoint_data_uri (the folder of the checkpoints) and "
                "checkpoint_stream_backend (a state backend that names it)"
            )
        if checkpoint_stream_backend is None:
            self._checkpoint_backend: StateBackend = FsStateBackend(checkpoint_data_uri)
        else:
            self._checkpoint_backend = checks.instance("checkpoint_stream_backend", checkpoint_stream_backend, StateBackend)

    def get_checkpoint_backend(self) -> StateBackend:
        """Return the state backend that names the folder of checkpoints.

        :returns: the one that was given, or an ``FsStateBackend`` for the folder that was given
        """
        return self._checkpoint_backend

    def get_number_of_transfering_threads(self) -> int:
        """Return the number of threads that transfer files.

        :returns: the value that was set; 4 by default
        """
        return self._transfer_threads

    @no_effect(_NO_ROCKSDB)
    def set_number_of_transfering_threads(self, number_of_transfering_threads: int) -> None:
        """Set the number of threads that transfer files.

        :param number_of_transfering_threads: at least 1
        """
        self._set_threads(number_of_transfering_threads)


def _asynchronous(value: bool | None) -> bool:
    return checks.boolean("using_asynchronous_snapshots", True if value is None else value)
