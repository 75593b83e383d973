"""Storages of checkpoints."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.no_effect import no_effect

_DEFAULT_FILE_STATE_THRESHOLD = 20 * 1024
_DEFAULT_WRITE_BUFFER = 4096


class CheckpointStorage:
    """The base class of storages of checkpoints.

    >>> from airflow_pipelines.datastream import CheckpointConfig, CheckpointStorage
    >>> storage = CheckpointConfig().set_checkpoint_storage_dir("/var/lib/checkpoints").get_checkpoint_storage()
    >>> isinstance(storage, CheckpointStorage), storage.get_checkpoint_path()
    (True, '/var/lib/checkpoints')
    """


class JobManagerCheckpointStorage(CheckpointStorage):
    """A storage in the memory of the process that runs the program. Its checkpoints are lost when the process ends.

    :param checkpoint_path: base folder of checkpoints, None for none
    :param max_state_size: the maximum number of bytes of one state

    >>> from airflow_pipelines.datastream import CheckpointConfig, JobManagerCheckpointStorage
    >>> config = CheckpointConfig().set_checkpoint_storage(JobManagerCheckpointStorage())
    >>> config.get_checkpoint_storage().get_max_state_size()
    5242880
    """

    DEFAULT_MAX_STATE_SIZE: ClassVar[int] = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        self._checkpoint_path = None if checkpoint_path is None else checks.text("checkpoint_path", checkpoint_path)
        size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size
        self._max_state_size = checks.integer("max_state_size", size, 1)

    def get_checkpoint_path(self) -> str | None:
        """Return the base folder of checkpoints.

        :returns: the path, or None
        """
        return self._checkpoint_path

    def get_max_state_size(self) -> int:
        """Return the maximum number of bytes of one state. The value is kept, and not enforced.

        :returns: bytes
        """
        return self._max_state_size


class FileSystemCheckpointStorage(CheckpointStorage):
    """A storage of checkpoints as files.

    :param checkpoint_path: base folder of checkpoints
    :param file_state_size_threshold: the number of bytes below which state would be stored with the metadata; kept, without effect
    :param write_buffer_size: the number of bytes to write at once, -1 for the default; kept, without effect

    >>> from airflow_pipelines.datastream import CheckpointConfig, FileSystemCheckpointStorage
    >>> config = CheckpointConfig().set_checkpoint_storage(FileSystemCheckpointStorage("/var/lib/checkpoints"))
    >>> config.get_checkpoint_storage().get_checkpoint_path()
    '/var/lib/checkpoints'
    """

    MAX_FILE_STATE_THRESHOLD: ClassVar[int] = 1024 * 1024

    def __init__(
        self, checkpoint_path: str | None = None, file_state_size_threshold: int | None = None, write_buffer_size: int = -1
    ) -> None:
        if checkpoint_path is None:
            raise ValueError("FileSystemCheckpointStorage needs checkpoint_path, a folder such as '/var/lib/checkpoints'")
        self._checkpoint_path = checks.text("checkpoint_path", checkpoint_path)
        threshold = _DEFAULT_FILE_STATE_THRESHOLD if file_state_size_threshold is None else file_state_size_threshold
        self._threshold = checks.integer("file_state_size_threshold", threshold, 0, self.MAX_FILE_STATE_THRESHOLD)
        self._write_buffer_size = checks.integer("write_buffer_size", write_buffer_size, -1)

    def get_checkpoint_path(self) -> str:
        """Return the base folder of checkpoints.

        :returns: the path
        """
        return self._checkpoint_path

    def get_min_file_size_threshold(self) -> int:
        """Return the number of bytes below which state would be stored with the metadata.

        :returns: bytes
        """
        return self._threshold

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes to write at once.

        :returns: bytes, at least the threshold below which state would be stored with the metadata
        """
        size = _DEFAULT_WRITE_BUFFER if self._write_buffer_size < 0 else self._write_buffer_size
        return max(size, self._threshold)


class CustomCheckpointStorage(CheckpointStorage):
    """A checkpoint storage written in Java.

    :param checkpoint_storage: any object that names it

    >>> from airflow_pipelines.datastream import CheckpointConfig, CustomCheckpointStorage
    >>> config = CheckpointConfig().set_checkpoint_storage(CustomCheckpointStorage("org.example.OurStorage"))
    >>> config.get_checkpoint_storage().checkpoint_storage
    'org.example.OurStorage'
    """

    @no_effect("classes of the JVM are not loaded")
    def __init__(self, checkpoint_storage: Any) -> None:
        self.checkpoint_storage = checkpoint_storage
