"""The statuses and the guarantee of a pipeline in wire form, as they are stored and answered."""

from __future__ import annotations

from enum import StrEnum


class RuntimeStatus(StrEnum):
    """The runtime component of a pipeline's status, in wire form."""

    UNAVAILABLE = "Unavailable"
    STANDBY = "Standby"
    AWAITING_APPROVAL = "AwaitingApproval"
    INITIALIZING = "Initializing"
    BOOTSTRAPPING = "Bootstrapping"
    CONCURRENT_BOOTSTRAPPING = "ConcurrentBootstrapping"
    SYNCHRONIZING = "Synchronizing"
    REPLAYING = "Replaying"
    PAUSED = "Paused"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    STOPPED = "Stopped"
    """The status, used only in transitions, of an incarnation that ended with an error and asks to be taken down."""


class CompilationStatus(StrEnum):
    """The status of the program's compilation, in wire form."""

    PENDING = "Pending"
    COMPILING_SQL = "CompilingSql"
    SQL_COMPILED = "SqlCompiled"
    COMPILING_RUST = "CompilingRust"
    SUCCESS = "Success"
    SQL_ERROR = "SqlError"
    RUST_ERROR = "RustError"
    SYSTEM_ERROR = "SystemError"


class ResourcesStatus(StrEnum):
    """The status of an incarnation's host. The desired value is only ever STOPPED or PROVISIONED."""

    STOPPED = "Stopped"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    STOPPING = "Stopping"


class CrashGuarantee(StrEnum):
    """The guarantee after a crash: the models of fault tolerance in wire form."""

    NONE = "none"
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"
