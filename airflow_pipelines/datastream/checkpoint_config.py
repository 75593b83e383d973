"""The configuration of checkpoints."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from airflow_pipelines.datastream.checkpoint_storage import CheckpointStorage, FileSystemCheckpointStorage
from airflow_pipelines.datastream.checkpointing_mode import CheckpointingMode
from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.no_effect import no_effect
from airflow_pipelines.datastream.common.time import Duration

_MINIMUM_MILLIS = 10
_ANY_NUMBER = 2**31 - 1
_BETWEEN_STEPS = "a checkpoint is taken between two steps, so nothing waits for it"
_NO_BARRIERS = "a checkpoint is taken between two steps, so no barriers travel with the elements"
_ONE_AT_A_TIME = "a checkpoint is taken between two steps, so there is never more than one"


class ExternalizedCheckpointCleanup(Enum):
    """The treatment of checkpoints when a program is cancelled.

    >>> from airflow_pipelines.datastream import CheckpointConfig, ExternalizedCheckpointCleanup
    >>> config = CheckpointConfig().set_externalized_checkpoint_cleanup(ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION)
    >>> config.is_externalized_checkpoints_enabled()
    True
    """

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2


class CheckpointConfig:
    """The configuration of checkpoints. None are taken without an interval.

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> config = StreamExecutionEnvironment.get_execution_environment().enable_checkpointing(60_000).get_checkpoint_config()
    >>> config.set_min_pause_between_checkpoints(5_000).set_tolerable_checkpoint_failure_number(3).get_checkpoint_interval()
    60000
    """

    DEFAULT_MODE: ClassVar[int] = CheckpointingMode.EXACTLY_ONCE.value
    DEFAULT_TIMEOUT: ClassVar[int] = 600_000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS: ClassVar[int] = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS: ClassVar[int] = 1

    def __init__(self) -> None:
        self._mode = CheckpointingMode(self.DEFAULT_MODE)
        self._interval = -1
        self._timeout = self.DEFAULT_TIMEOUT
        self._min_pause = self.DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS
        self._max_concurrent = self.DEFAULT_MAX_CONCURRENT_CHECKPOINTS
        self._tolerable_failures = 0
        self._cleanup: ExternalizedCheckpointCleanup | None = None
        self._unaligned = False
        self._force_unaligned = False
        self._alignment_timeout = Duration.of_millis(0)
        self._storage: CheckpointStorage | None = None

    def is_checkpointing_enabled(self) -> bool:
        """Return True if checkpoints are taken.

        :returns: True if there is an interval
        """
        return self._interval > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the guarantee of checkpoints.

        :returns: ``EXACTLY_ONCE`` by default
        """
        return self._mode

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Set the guarantee of checkpoints.

        :param checkpointing_mode: the mode
        :returns: this object
        :raises ValueError: if the mode is ``AT_LEAST_ONCE`` and unaligned checkpoints are on
        """
        mode = checks.member("checkpointing_mode", checkpointing_mode, CheckpointingMode)
        _check_alignment(mode, self._unaligned)
        self._mode = mode
        return self

    def get_checkpoint_interval(self) -> int:
        """Return the time between two checkpoints.

        :returns: milliseconds; -1 if none are taken
        """
        return self._interval

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Enable checkpoints, and set the time between two of them.

        :param checkpoint_interval: milliseconds, at least 10
        :returns: this object
        """
        self._interval = checks.integer("checkpoint_interval", checkpoint_interval, _MINIMUM_MILLIS)
        return self

    def get_checkpoint_timeout(self) -> int:
        """Return the time after which a checkpoint is abandoned.

        :returns: milliseconds
        """
        return self._timeout

    @no_effect(_BETWEEN_STEPS)
    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Set the time after which a checkpoint is abandoned.

        :param checkpoint_timeout: milliseconds, at least 10
        :returns: this object
        """
        self._timeout = checks.integer("checkpoint_timeout", checkpoint_timeout, _MINIMUM_MILLIS)
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        """Return the minimum time between the end of a checkpoint and the start of the next.

        :returns: milliseconds
        """
        return self._min_pause

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Set the minimum time between the end of a checkpoint and the start of the next.

        :param min_pause_between_checkpoints: milliseconds, at least 0
        :returns: this object
        """
        self._min_pause = checks.integer("min_pause_between_checkpoints", min_pause_between_checkpoints, 0)
        return self

    def get_max_concurrent_checkpoints(self) -> int:
        """Return the maximum number of concurrent checkpoints.

        :returns: the value that was set; 1 by default
        """
        return self._max_concurrent

    @no_effect(_ONE_AT_A_TIME)
    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Set the maximum number of concurrent checkpoints.

        :param max_concurrent_checkpoints: at least 1
        :returns: this object
        """
        self._max_concurrent = checks.integer("max_concurrent_checkpoints", max_concurrent_checkpoints, 1)
        return self

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Return True if the first checkpoint that fails ends the program.

        :returns: True by default, and if no failed checkpoint is tolerated
        """
        return self._tolerable_failures == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Set whether the first checkpoint that fails ends the program. Otherwise, any number of failures is tolerated.

        :param fail_on_checkpointing_errors: True to end the program
        :returns: this object
        """
        fail = checks.boolean("fail_on_checkpointing_errors", fail_on_checkpointing_errors)
        self._tolerable_failures = 0 if fail else _ANY_NUMBER
        return self

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Return the number of consecutive failed checkpoints that are tolerated.

        :returns: 0 by default
        """
        return self._tolerable_failures

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """Set the number of consecutive failed checkpoints that are tolerated before the program ends.

        :param tolerable_checkpoint_failure_number: at least 0
        :returns: this object
        """
        number = checks.integer("tolerable_checkpoint_failure_number", tolerable_checkpoint_failure_number, 0, _ANY_NUMBER)
        self._tolerable_failures = number
        return self

    def enable_externalized_checkpoints(self, cleanup_mode: ExternalizedCheckpointCleanup) -> CheckpointConfig:
        """Call :meth:`set_externalized_checkpoint_cleanup`. This is its old name.

        :param cleanup_mode: the treatment of the checkpoints
        :returns: this object
        """
        return self.set_externalized_checkpoint_cleanup(cleanup_mode)

    def set_externalized_checkpoint_cleanup(self, cleanup_mode: ExternalizedCheckpointCleanup) -> CheckpointConfig:
        """Set the treatment of checkpoints when the program is cancelled.

        :param cleanup_mode: the treatment of the checkpoints
        :returns: this object
        """
        self._cleanup = checks.member("cleanup_mode", cleanup_mode, ExternalizedCheckpointCleanup)
        return self

    def get_externalized_checkpoint_cleanup(self) -> ExternalizedCheckpointCleanup | None:
        """Return the treatment of checkpoints when the program is cancelled.

        :returns: the value that was set; None by default
        """
        return self._cleanup

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Return True if checkpoints are kept for a later run.

        :returns: True if a clean-up was set and is not ``NO_EXTERNALIZED_CHECKPOINTS``
        """
        return self._cleanup not in (None, ExternalizedCheckpointCleanup.NO_EXTERNALIZED_CHECKPOINTS)

    @no_effect(_NO_BARRIERS)
    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Set whether checkpoints contain in-flight elements.

        :param enabled: True to include them
        :returns: this object
        :raises ValueError: if the mode is ``AT_LEAST_ONCE``
        """
        unaligned = checks.boolean("enabled", enabled)
        _check_alignment(self._mode, unaligned)
        self._unaligned = unaligned
        return self

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Exclude in-flight elements from checkpoints.

        :returns: this object
        """
        self._unaligned = False
        return self

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return True if checkpoints contain in-flight elements.

        :returns: the value that was set; False by default
        """
        return self._unaligned

    @no_effect(_NO_BARRIERS)
    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Set whether checkpoints are unaligned regardless of the operators in the program.

        :param force_unaligned_checkpoints: True for unaligned checkpoints
        :returns: this object
        """
        self._force_unaligned = checks.boolean("force_unaligned_checkpoints", force_unaligned_checkpoints)
        return self

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return True if checkpoints are unaligned regardless of the operators in the program.

        :returns: the value that was set; False by default
        """
        return self._force_unaligned

    @no_effect(_NO_BARRIERS)
    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        """Set the time after which an aligned checkpoint continues as an unaligned one.

        :param alignment_timeout: the time, at least 0
        :returns: this object
        """
        timeout = checks.instance("alignment_timeout", alignment_timeout, Duration, "use Duration.of_millis(...)")
        checks.integer("alignment_timeout in nanoseconds", timeout.to_nanos(), 0)
        self._alignment_timeout = timeout
        return self

    def get_alignment_timeout(self) -> Duration:
        """Return the time after which an aligned checkpoint continues as an unaligned one.

        :returns: the value that was set; 0 by default
        """
        return self._alignment_timeout

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        """Set the storage of checkpoints.

        :param storage: the storage
        :returns: this object
        """
        hint = "use FileSystemCheckpointStorage(path), or set_checkpoint_storage_dir(path)"
        self._storage = checks.instance("storage", storage, CheckpointStorage, hint)
        return self

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> CheckpointConfig:
        """Set the folder of checkpoints.

        :param checkpoint_path: path of the folder
        :returns: this object
        """
        return self.set_checkpoint_storage(FileSystemCheckpointStorage(checks.text("checkpoint_path", checkpoint_path)))

    def get_checkpoint_storage(self) -> CheckpointStorage | None:
        """Return the storage of checkpoints.

        :returns: the value that was set; None by default
        """
        return self._storage


def _check_alignment(mode: CheckpointingMode, unaligned: bool) -> None:
    if unaligned and mode is CheckpointingMode.AT_LEAST_ONCE:
        raise ValueError(
            "Unaligned checkpoints need CheckpointingMode.EXACTLY_ONCE: call disable_unaligned_checkpoints(), "
            "or set_checkpointing_mode(CheckpointingMode.EXACTLY_ONCE)"
        )
