"""The observation of one poll of a pipeline, and the classification of errors of a poll."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.contract.enums import PipelineStatus
from airflow_pipelines.sdk.errors import PipelineAPIError, PipelinesError
from airflow_pipelines.sdk.outages import PHASE_CODES

_TRANSIENT_STATUS_CODES = frozenset({408, 429, 500, 502, 504})


@dataclass(frozen=True, slots=True)
class Request:
    """A GET request below the pipeline's own path: ``tail`` such as ``/stats``, and query parameters."""

    tail: str
    params: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observation:
    """The observation of one poll of a pipeline.

    :param descriptor: the pipeline with the status selector, None if there is no such pipeline
    :param at: the time of the poll, in seconds since the epoch
    :param answer: the answer to the condition's own request, None if it was not made or was refused
    :param refusal: the error that answered that request
    """

    descriptor: Mapping[str, Any] | None
    at: float
    answer: Mapping[str, Any] | None = None
    refusal: PipelineAPIError | None = None

    @property
    def status(self) -> PipelineStatus:
        """The pipeline's status; NOT_FOUND if there is no pipeline."""
        if self.descriptor is None:
            return PipelineStatus.NOT_FOUND
        return PipelineStatus.from_str(str(self.descriptor["deployment_status"]))

    @property
    def progress(self) -> str:
        """The progress of the evaluation of changed views; empty if it was not asked for."""
        rows = (self.answer or {}).get("bootstrap_progress")
        return f"{rows['rows_read']} of {rows['rows']} rows read for changed views" if rows else ""

    @property
    def is_down(self) -> bool:
        """True if the pipeline is stopped or stopping, and nobody asked for it to run."""
        return (
            self.descriptor is not None
            and self.status in (PipelineStatus.STOPPED, PipelineStatus.STOPPING)
            and self.descriptor.get("deployment_desired_status") == "Stopped"
        )

    @property
    def deployment_error(self) -> Mapping[str, Any] | None:
        """The error that took the pipeline down, or None."""
        return (self.descriptor or {}).get("deployment_error") or None


def is_transient(error: PipelinesError | ConnectionError) -> bool:
    """Return True if a retry may help: the service was not reached, is overloaded, or failed internally."""
    if isinstance(error, PipelineAPIError):
        return error.status_code in _TRANSIENT_STATUS_CODES or (error.status_code == 503 and error.error_code not in PHASE_CODES)
    return isinstance(error, (ConnectionError, TimeoutError))


def describe_deployment_error(error: Mapping[str, Any] | None) -> str:
    """Return a deployment error as text: its code and its message.

    The message ends with the host's last log lines if the host was lost.
    """
    if not error:
        return "no error was recorded"
    code = error.get("error_code")
    return f"{code}: {error.get('message', '')}" if code else str(error.get("message", ""))
