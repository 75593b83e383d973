"""The enumerations of the contract. Members of status enums have their wire form as value and parse case-insensitively."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import Any, Self


class _WireEnum(Enum):
    """An enum whose values are wire strings."""

    @classmethod
    def from_str(cls, value: str) -> Self:
        """Return the member whose name or wire form is ``value``, ignoring case.

        :param value: a member's name (``RUNNING``) or its wire form (``Running``)
        :returns: the member
        :raises ValueError: when there is no such member; the message lists the known ones
        """
        folded = value.lower()
        for member in cls:
            if folded in (member.name.lower(), str(member.value).lower()):
                return member
        known = ", ".join(member.name for member in cls)
        raise ValueError(f"unknown {cls.__name__} {value!r}; known: {known}")

    def __str__(self) -> str:
        return str(self.name)


class BuildMode(Enum):
    """The ways in which a builder treats an existing pipeline of its name. Kept for compatibility; no method takes it.

    >>> from airflow_pipelines import BuildMode
    >>> BuildMode.GET_OR_CREATE.name
    'GET_OR_CREATE'
    """

    CREATE = 1
    GET = 2
    GET_OR_CREATE = 3


@unique
class PipelineStatus(_WireEnum):
    """The combined status of a pipeline: its resources' status, or its runtime's while resources are provisioned.

    >>> from airflow_pipelines import PipelineStatus
    >>> PipelineStatus.from_str("AwaitingApproval") is PipelineStatus.AWAITINGAPPROVAL
    True
    """

    NOT_FOUND = "NotFound"
    """The status of a pipeline that does not exist. Known to clients only."""
    STOPPED = "Stopped"
    PROVISIONING = "Provisioning"
    UNAVAILABLE = "Unavailable"
    """The status of a pipeline whose host was not reached lately; it may come back."""
    STANDBY = "Standby"
    AWAITINGAPPROVAL = "AwaitingApproval"
    """The status of a pipeline whose program differs from the checkpoint's: a person has to approve the difference or stop it."""
    INITIALIZING = "Initializing"
    BOOTSTRAPPING = "Bootstrapping"
    """The status while new and changed views are evaluated from the contents of the tables."""
    CONCURRENTBOOTSTRAPPING = "ConcurrentBootstrapping"
    SYNCHRONIZING = "Synchronizing"
    REPLAYING = "Replaying"
    """The status while the journal of the previous incarnation is replayed."""
    PAUSED = "Paused"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    """The status after the final checkpoint was written; the pipeline is about to stop."""
    STOPPING = "Stopping"


@unique
class DeploymentDesiredStatus(_WireEnum):
    """The combined status that the pipeline should reach.

    >>> from airflow_pipelines import DeploymentDesiredStatus
    >>> DeploymentDesiredStatus.from_str("Paused").name
    'PAUSED'
    """

    STOPPED = "Stopped"
    UNAVAILABLE = "Unavailable"
    STANDBY = "Standby"
    PAUSED = "Paused"
    RUNNING = "Running"
    SUSPENDED = "Suspended"


@unique
class DeploymentResourcesStatus(_WireEnum):
    """The status of the pipeline's host.

    >>> from airflow_pipelines import DeploymentResourcesStatus
    >>> [status.name for status in DeploymentResourcesStatus]
    ['STOPPED', 'PROVISIONING', 'PROVISIONED', 'STOPPING']
    """

    STOPPED = "Stopped"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    STOPPING = "Stopping"


@unique
class DeploymentResourcesDesiredStatus(_WireEnum):
    """The desired status of the pipeline's host.

    >>> from airflow_pipelines import DeploymentResourcesDesiredStatus
    >>> DeploymentResourcesDesiredStatus.from_str("provisioned").value
    'Provisioned'
    """

    STOPPED = "Stopped"
    PROVISIONED = "Provisioned"


@unique
class DeploymentRuntimeStatus(_WireEnum):
    """The status of the pipeline on its host. Meaningful only while resources are provisioned.

    >>> from airflow_pipelines import DeploymentRuntimeStatus
    >>> DeploymentRuntimeStatus.from_str("Replaying").name
    'REPLAYING'
    """

    UNAVAILABLE = "Unavailable"
    STANDBY = "Standby"
    AWAITINGAPPROVAL = "AwaitingApproval"
    INITIALIZING = "Initializing"
    BOOTSTRAPPING = "Bootstrapping"
    CONCURRENTBOOTSTRAPPING = "ConcurrentBootstrapping"
    SYNCHRONIZING = "Synchronizing"
    REPLAYING = "Replaying"
    PAUSED = "Paused"
    RUNNING = "Running"
    SUSPENDED = "Suspended"


@unique
class DeploymentRuntimeDesiredStatus(_WireEnum):
    """The desired status of the pipeline on its host.

    >>> from airflow_pipelines import DeploymentRuntimeDesiredStatus
    >>> DeploymentRuntimeDesiredStatus.from_str("Standby").name
    'STANDBY'
    """

    UNAVAILABLE = "Unavailable"
    STANDBY = "Standby"
    PAUSED = "Paused"
    RUNNING = "Running"
    SUSPENDED = "Suspended"


@unique
class StorageStatus(_WireEnum):
    """The status of the pipeline's storage.

    >>> from airflow_pipelines import StorageStatus
    >>> StorageStatus.from_str("InUse").name
    'INUSE'
    """

    CLEARED = "Cleared"
    """The status of a storage that was never used, or was cleared since: nothing is kept."""
    CLEARING = "Clearing"
    """The status while the storage is being deleted; this cannot be undone."""
    INUSE = "InUse"
    """The status of a storage that holds state, which restricts some edits until it is cleared."""


@unique
class TransactionStatus(_WireEnum):
    """The status of the pipeline's current transaction.

    >>> from airflow_pipelines.enums import TransactionStatus
    >>> TransactionStatus.from_str("CommitInProgress").name
    'CommitInProgress'
    """

    NoTransaction = "NoTransaction"
    TransactionInProgress = "TransactionInProgress"
    CommitInProgress = "CommitInProgress"


@unique
class BootstrapPolicy(_WireEnum):
    """The reaction of a start to a program that differs from that of the newest checkpoint."""

    ALLOW = "allow"
    """The policy to bootstrap at once."""
    AWAIT_APPROVAL = "await_approval"
    """The policy to show the difference and wait for :meth:`Pipeline.approve`."""
    REJECT = "reject"
    """The policy to refuse the start; the checkpoint is kept."""


@unique
class CompletionTokenStatus(Enum):
    """The processing status of everything that a completion token stands for.

    >>> from airflow_pipelines import CompletionTokenStatus
    >>> CompletionTokenStatus("inprogress") is CompletionTokenStatus.IN_PROGRESS
    True
    """

    COMPLETE = "complete"
    """The status once all of it was processed and every output that follows from it was delivered."""
    IN_PROGRESS = "inprogress"


@unique
class FaultToleranceModel(_WireEnum):
    """The guarantee for outputs after a crash. No model at all means explicit checkpoints only.

    >>> from airflow_pipelines import FaultToleranceModel, RuntimeConfig
    >>> config = RuntimeConfig(fault_tolerance_model=FaultToleranceModel.ExactlyOnce)
    >>> config.to_dict()["fault_tolerance"]
    {'model': 'exactly_once'}
    """

    AtLeastOnce = "at_least_once"
    """The guarantee that nothing is lost; output may be repeated."""
    ExactlyOnce = "exactly_once"
    """The guarantee that nothing is lost and nothing is repeated."""


@unique
class CompilationProfile(Enum):
    """The effort of a compilation. Programs run on Spark, so every profile gives the same program here.

    >>> from airflow_pipelines import CompilationProfile
    >>> CompilationProfile("dev").name
    'DEV'
    """

    SERVER_DEFAULT = None
    """The profile that leaves the choice to the service."""
    DEV = "dev"
    UNOPTIMIZED = "unoptimized"
    OPTIMIZED = "optimized"
    OPTIMIZED_SYMBOLS = "optimized_symbols"


@unique
class PipelineFieldSelector(Enum):
    """The selection of a pipeline's fields to read.

    >>> from airflow_pipelines import PipelineFieldSelector
    >>> PipelineFieldSelector.STATUS.value
    'status'
    """

    ALL = "all"
    STATUS = "status"
    """All fields except the program, the configurations and the compiler's output."""


class _OutcomeEnum(Enum):
    """An enum whose members may carry an error.

    Members are shared, so an error is never set on one: :meth:`_with_error` returns a copy that equals its member.
    """

    error: Any

    def __init__(self, value: object) -> None:
        del value
        self.error = None

    def _with_error(self, error: Any) -> Self:
        copy = object.__new__(type(self))
        copy._name_ = self._name_
        copy._value_ = self._value_
        copy.error = error
        return copy

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._value_ == other._value_

    def __hash__(self) -> int:
        return hash((type(self), self._value_))

    def __str__(self) -> str:
        return str(self.name) if self.error is None else f"{self.name}: {self.error}"


class CheckpointStatus(_OutcomeEnum):
    """The status of a checkpoint, or of its sync. ``error`` is set for a failure.

    >>> from airflow_pipelines import CheckpointStatus
    >>> CheckpointStatus.Success.get_error() is None
    True
    """

    Success = "success"
    Failure = "failure"
    InProgress = "in_progress"
    Unknown = "unknown"

    def get_error(self) -> str | None:
        """Return the failure's cause, or None."""
        return None if self.error is None else str(self.error)


class ProgramStatus(_OutcomeEnum):
    """The status of the program's compilation. ``error`` is set for the members that end in ``Error``.

    >>> from airflow_pipelines import ProgramStatus
    >>> ProgramStatus.from_value("Success").is_final, ProgramStatus.from_value({"SqlError": {}}).is_error
    (True, True)
    """

    Pending = "Pending"
    CompilingSql = "CompilingSql"
    SqlCompiled = "SqlCompiled"
    CompilingRust = "CompilingRust"
    Success = "Success"
    SqlError = "SqlError"
    RustError = "RustError"
    SystemError = "SystemError"

    @classmethod
    def from_value(cls, value: str | Mapping[str, Any]) -> ProgramStatus:
        """Return the member for a wire value.

        :param value: a status name, or an object with the status as its only key and the error as its value
        :returns: the member, with ``error`` set if ``value`` has one
        :raises ValueError: when the status is unknown
        """
        if isinstance(value, Mapping):
            if len(value) != 1:
                raise ValueError(f"a program status has one key, not {sorted(value)}")
            name, error = next(iter(value.items()))
            return cls(name)._with_error(error)
        return cls(value)

    @property
    def is_final(self) -> bool:
        """True if compiling has ended, successfully or not."""
        return self == ProgramStatus.Success or self.is_error

    @property
    def is_error(self) -> bool:
        """True if compiling failed."""
        return self in (ProgramStatus.SqlError, ProgramStatus.RustError, ProgramStatus.SystemError)

    def get_error(self) -> dict[str, Any] | None:
        """Return the compilation error (``program_error`` of the pipeline), or None."""
        return self.error  # type: ignore[no-any-return]
