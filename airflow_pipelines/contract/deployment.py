"""What the service tells a host about one incarnation of a pipeline, and what the host says about it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class RuntimeStatus(StrEnum):
    """The runtime component of a pipeline's status, in wire form."""

    UNAVAILABLE = "Unavailable"
    STANDBY = "Standby"
    AWAITING_APPROVAL = "AwaitingApproval"
    INITIALIZING = "Initializing"
    BOOTSTRAPPING = "Bootstrapping"
    REPLAYING = "Replaying"
    PAUSED = "Paused"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    STOPPED = "Stopped"
    """Only in transitions: the incarnation ended with an error and asks to be taken down."""


class Deployment(BaseModel):
    """One incarnation of a pipeline, as handed to a host. ``storage`` is the pipeline's own folder.

    ``program_version`` is None when a service of an earlier release asks. ``from_checkpoint``: go back to this one, whatever is
    newer. ``newest_checkpoint``: one that is known to have been made, so that a storage without it is not taken for an empty one.
    """

    model_config = ConfigDict(frozen=True)

    deployment_id: UUID
    pipeline_id: UUID
    pipeline_name: str
    program_code: str
    udf_python: str = ""
    program_version: int | None = None
    runtime_config: dict[str, Any]
    storage: str
    log_path: str
    initial: str = "running"
    bootstrap_policy: str = "await_approval"
    silent_bootstrap: bool = False
    from_checkpoint: UUID | None = None
    newest_checkpoint: UUID | None = None


class RuntimeTransition(BaseModel):
    """A change of an incarnation's runtime status, recorded by its host in the order it happened.

    ``error`` is a deployment error (``message, error_code, details``) when the incarnation failed. With any other status than
    STOPPED it is the reason why a graceful stop was given up: the incarnation goes on with what was desired before.
    ``checkpoints`` is the list for ``storage_status_details`` when it changed, else None.
    """

    model_config = ConfigDict(frozen=True)

    sequence: int = 0
    deployment_id: UUID
    status: RuntimeStatus
    desired: RuntimeStatus
    details: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    checkpoints: list[dict[str, Any]] | None = None
