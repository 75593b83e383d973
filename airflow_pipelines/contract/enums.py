"""The enumerations of the contract. Members of status enums have their wire form as value and parse case-insensitively."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import Any, Self


class _WireEnum(Enum):
    """An enum whose values are wire strings."""

    @classmethod
    def from_str(cls, value: str) -> Self:
        """The member whose name or wire form is ``value``, whatever its case.

        :param value: a member's name (``RUNNING``) or its wire form (``Running``)
        :returns: the member
        :raises ValueError: when no member is called so; the message lists the known ones
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
    """How a builder meets an existing pipeline of its name. Kept for compatibility; no method takes it."""

    CREATE = 1
    GET = 2
    GET_OR_CREATE = 3


@unique
class PipelineStatus(_WireEnum):
    """The one combined status of a pipeline: its resources' status, or its runtime's while resources are provisioned."""

    NOT_FOUND = "NotFound"
    """There is no such pipeline. Known to clients only."""
    STOPPED = "Stopped"
    PROVISIONING = "Provisioning"
    UNAVAILABLE = "Unavailable"
    """The host was not reached lately; it may come back."""
    STANDBY = "Standby"
    AWAITINGAPPROVAL = "AwaitingApproval"
    """The program differs from the checkpoint's: a person has to approve the difference or stop the pipeline."""
    INITIALIZING = "Initializing"
    BOOTSTRAPPING = "Bootstrapping"
    """New and changed views are being evaluated from what the tables hold."""
    CONCURRENTBOOTSTRAPPING = "ConcurrentBootstrapping"
    SYNCHRONIZING = "Synchronizing"
    REPLAYING = "Replaying"
    """The journal of the previous incarnation is being replayed."""
    PAUSED = "Paused"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    """The final checkpoint is written; the pipeline is about to stop."""
    STOPPING = "Stopping"


@unique
class DeploymentDesiredStatus(_WireEnum):
    """The combined status the pipeline is meant to reach."""

    STOPPED = "Stopped"
    UNAVAILABLE = "Unavailable"
    STANDBY = "Standby"
    PAUSED = "Paused"
    RUNNING = "Running"
    SUSPENDED = "Suspended"


@unique
class DeploymentResourcesStatus(_WireEnum):
    """Whether the pipeline has a host."""

    STOPPED = "Stopped"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    STOPPING = "Stopping"


@unique
class DeploymentResourcesDesiredStatus(_WireEnum):
    """Whether the pipeline is meant to have a host."""

    STOPPED = "Stopped"
    PROVISIONED = "Provisioned"


@unique
class DeploymentRuntimeStatus(_WireEnum):
    """What the pipeline does on its host. Meaningful only while resources are provisioned."""

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
    """What the pipeline is meant to do on its host."""

    UNAVAILABLE = "Unavailable"
    STANDBY = "Standby"
    PAUSED = "Paused"
    RUNNING = "Running"
    SUSPENDED = "Suspended"


@unique
class StorageStatus(_WireEnum):
    """Whether the pipeline holds storage."""

    CLEARED = "Cleared"
    """Never started, or cleared since: nothing is kept."""
    CLEARING = "Clearing"
    """What was kept is being deleted; this cannot be undone."""
    INUSE = "InUse"
    """Started before: state is kept, which restricts some edits until storage is cleared."""


@unique
class TransactionStatus(_WireEnum):
    """Where the pipeline stands with transactions."""

    NoTransaction = "NoTransaction"
    TransactionInProgress = "TransactionInProgress"
    CommitInProgress = "CommitInProgress"


@unique
class BootstrapPolicy(_WireEnum):
    """What a start does when the program differs from the one of the newest checkpoint."""

    ALLOW = "allow"
    """Bootstrap at once."""
    AWAIT_APPROVAL = "await_approval"
    """Show the difference and wait for :meth:`Pipeline.approve`."""
    REJECT = "reject"
    """Refuse to start; the checkpoint is kept."""


@unique
class CompletionTokenStatus(Enum):
    """Whether everything a completion token stands for was processed."""

    COMPLETE = "complete"
    """All of it was processed and every output that follows from it was delivered."""
    IN_PROGRESS = "inprogress"


@unique
class FaultToleranceModel(_WireEnum):
    """What a crash may do to outputs. No model at all means explicit checkpoints only."""

    AtLeastOnce = "at_least_once"
    """Nothing is lost; output may be repeated."""
    ExactlyOnce = "exactly_once"
    """Nothing is lost and nothing is repeated."""


@unique
class CompilationProfile(Enum):
    """How much effort compiling takes. Programs run on Spark, so every profile gives the same program here."""

    SERVER_DEFAULT = None
    """Leave the choice to the service."""
    DEV = "dev"
    UNOPTIMIZED = "unoptimized"
    OPTIMIZED = "optimized"
    OPTIMIZED_SYMBOLS = "optimized_symbols"


@unique
class PipelineFieldSelector(Enum):
    """Which fields of a pipeline to read."""

    ALL = "all"
    STATUS = "status"
    """All but the program, the configurations and the compiler's output."""


class _OutcomeEnum(Enum):
    """An enum whose members may carry an error.

    Members are shared by everybody, so an error is never set on one: :meth:`_with_error` gives a copy that equals its member.
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
    """How a checkpoint, or the sync of one, fares. ``error`` is set for a failure."""

    Success = "success"
    Failure = "failure"
    InProgress = "in_progress"
    Unknown = "unknown"

    def get_error(self) -> str | None:
        """The failure's cause, or None."""
        return None if self.error is None else str(self.error)


class ProgramStatus(_OutcomeEnum):
    """How far compiling of the program got. ``error`` is set for the members that end in ``Error``."""

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
        """The member for a wire value.

        :param value: a status name, or an object with the status as its only key and the error as its value
        :returns: the member, with ``error`` set when ``value`` brought one
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
        """Whether compiling has come to its end, well or badly."""
        return self == ProgramStatus.Success or self.is_error

    @property
    def is_error(self) -> bool:
        """Whether compiling failed."""
        return self in (ProgramStatus.SqlError, ProgramStatus.RustError, ProgramStatus.SystemError)

    def get_error(self) -> dict[str, Any] | None:
        """The compilation error (``program_error`` of the pipeline), or None."""
        return self.error  # type: ignore[no-any-return]
