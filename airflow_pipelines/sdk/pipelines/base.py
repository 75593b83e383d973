"""The base of all parts of a pipeline: its client, its name, its descriptor, and waits for its status."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from airflow_pipelines.contract.enums import PipelineFieldSelector, PipelineStatus, ProgramStatus
from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.sdk.client import PipelineClient
from airflow_pipelines.sdk.errors import (
    PipelineAPIError,
    PipelineFailedError,
    ProgramCompilationError,
    describe_program_error,
)
from airflow_pipelines.sdk.pipelines.waiting import wait_until
from airflow_pipelines.sdk.wire import path_of

logger = logging.getLogger(__name__)

STATUS_POLL_S = 0.5


class PipelineBase:
    """The name of a pipeline and the last descriptor read of it."""

    def __init__(self, client: PipelineClient) -> None:
        self.client = client
        self._name: str | None = None
        self._descriptor: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The name of the pipeline."""
        if self._name is None:
            raise ValueError("this pipeline has no name: get one with Pipeline.get(name, client) or a PipelineBuilder")
        return self._name

    def refresh(self, field_selector: PipelineFieldSelector) -> None:
        """Read the pipeline again.

        :param field_selector: the fields to read; the others keep their values
        :raises PipelineAPIError: with code ``UnknownPipelineName`` when there is no such pipeline any more
        :raises PipelineConnectionError: when the service cannot be reached
        """
        self._read(field_selector)

    def status(self) -> PipelineStatus:
        """Return the current status of the pipeline.

        :returns: the status; ``NOT_FOUND`` if there is no such pipeline (any more)
        """
        try:
            return status_of(self._read(PipelineFieldSelector.STATUS))
        except PipelineAPIError as error:
            if error.error_code == ErrorCode.UNKNOWN_PIPELINE_NAME:
                return PipelineStatus.NOT_FOUND
            raise

    def wait_for_status(self, expected_status: PipelineStatus, timeout: float | None = None) -> None:
        """Wait until the pipeline has a status.

        :param expected_status: the status to wait for
        :param timeout: maximum number of seconds to wait; None waits without limit
        :raises TimeoutError: when the status is not reached in time; the message names the status seen last
        :raises PipelineFailedError: when the pipeline stops with an error, so that it cannot reach the status any more
        """
        what = f"pipeline {self.name!r} to become {expected_status}"
        self._wait_for_status({expected_status}, what=what, action="RUN", timeout_s=timeout)

    def _path(self, *parts: str) -> str:
        return path_of("pipelines", self.name, *parts)

    def _read(self, selector: PipelineFieldSelector, *, idempotent: bool = True) -> dict[str, Any]:
        """Read the descriptor; fields that the selector leaves out keep their values."""
        answer = self.client.get(self._path(), params={"selector": selector.value}, idempotent=idempotent)
        self._descriptor = self._descriptor | answer
        return self._descriptor

    def _field(self, name: str) -> Any:
        """Return one field, freshly read."""
        return self._read(PipelineFieldSelector.ALL)[name]

    def _optional_field(self, name: str) -> Any:
        """Return one field that only some pipelines have, freshly read; None if this one lacks it."""
        return self.client.get(self._path(), params={"selector": PipelineFieldSelector.ALL.value}).get(name)

    def _status_field(self, name: str) -> Any:
        """Return one field of the status selector, freshly read."""
        return self._read(PipelineFieldSelector.STATUS)[name]

    def _wait_for_status(
        self,
        expected: Collection[PipelineStatus],
        *,
        what: str,
        action: str,
        timeout_s: float | None,
    ) -> PipelineStatus:
        """Wait for one of several statuses.

        :param expected: the statuses
        :param what: the awaited condition, for messages
        :param action: the action that fails if the pipeline stops with an error, for the message
        :param timeout_s: maximum number of seconds to wait; None waits without limit
        :returns: the status that was reached
        :raises PipelineTimeoutError: when none is reached in time
        :raises PipelineFailedError: when the pipeline stops with an error meanwhile
        """
        last = "nothing"

        def check() -> PipelineStatus | None:
            nonlocal last
            descriptor = self._read(PipelineFieldSelector.STATUS, idempotent=False)
            status = status_of(descriptor)
            last = describe_status(descriptor)
            if status in expected:
                return status
            self._raise_if_failed(descriptor, action)
            return None

        return wait_until(check, what=what, seen=lambda: last, timeout_s=timeout_s, poll_s=STATUS_POLL_S)

    def _raise_if_failed(self, descriptor: Mapping[str, Any], action: str) -> None:
        """Raise an error if the pipeline is down for good with an error, so that waiting longer would be in vain.

        :param descriptor: the pipeline as the service sends it
        :param action: the action that failed, for the message
        :raises PipelineFailedError: when it is
        """
        error = descriptor.get("deployment_error")
        if not error or not is_down(descriptor):
            return
        message = f"Unable to {action} the pipeline: {self.name!r} stopped with an error: {error.get('message')}"
        if error.get("error_code") == ErrorCode.START_FAILED_DUE_TO_FAILED_COMPILATION:
            program_error = self._field("program_error") or {}
            raise PipelineFailedError(f"{message}\n{describe_program_error(program_error)}", error)
        raise PipelineFailedError(message, error)

    def _raise_if_down(self, awaited: str) -> str:
        """Return the pipeline's state in words, and raise an error if it is down.

        :param awaited: the awaited condition, for the message
        :raises PipelineFailedError: when it is down, with its error if it has one
        """
        descriptor = self._read(PipelineFieldSelector.STATUS, idempotent=False)
        self._raise_if_failed(descriptor, "CONTINUE")
        if is_down(descriptor):
            raise PipelineFailedError(
                f"pipeline {self.name!r} is stopped, or was stopped while waiting for {awaited}: start it first"
            )
        return describe_status(descriptor)

    def _wait_for_compilation(self, program_version: int, timeout_s: float | None = None) -> None:
        """Wait until a version of the program is compiled.

        :param program_version: the version
        :param timeout_s: maximum number of seconds to wait; None waits without limit
        :raises ProgramCompilationError: when it does not compile; with the compiler's messages
        :raises PipelineFailedError: when somebody changes the program meanwhile
        :raises PipelineTimeoutError: when it is not compiled in time
        """
        last = "nothing"

        def check() -> ProgramStatus | None:
            nonlocal last
            descriptor = self._read(PipelineFieldSelector.STATUS, idempotent=False)
            if descriptor["program_version"] != program_version:
                raise PipelineFailedError(
                    f"pipeline {self.name!r} was changed by somebody else while its program was compiled "
                    f"(version {descriptor['program_version']} instead of {program_version})"
                )
            status = ProgramStatus.from_value(descriptor["program_status"])
            last = f"program status {status.name}"
            return status if status.is_final else None

        what = f"the program of pipeline {self.name!r} to be compiled"
        status = wait_until(check, what=what, seen=lambda: last, timeout_s=timeout_s, poll_s=STATUS_POLL_S)
        if status.is_error:
            program_error = self._field("program_error") or {}
            text = describe_program_error(program_error) or f"compiling ended with {status.name}"
            raise ProgramCompilationError(f"The program of pipeline {self.name!r} failed to compile:\n{text}", program_error)
        warnings = describe_program_error(self._field("program_error") or {})
        if warnings:
            logger.warning("The program of pipeline %r compiled with warnings:\n%s", self.name, warnings)


def status_of(descriptor: Mapping[str, Any]) -> PipelineStatus:
    """Return the combined status in a descriptor."""
    return PipelineStatus.from_str(descriptor["deployment_status"])


def is_down(descriptor: Mapping[str, Any]) -> bool:
    """Return True if the pipeline is stopped and its desired status is stopped too."""
    return bool(descriptor["deployment_status"] == "Stopped" and descriptor["deployment_desired_status"] == "Stopped")


def describe_status(descriptor: Mapping[str, Any]) -> str:
    """Return a descriptor's state in words, for messages."""
    status, desired = descriptor["deployment_status"], descriptor["deployment_desired_status"]
    text = f"status {status}" if status == desired else f"status {status} (desired {desired})"
    if status == "Stopped" and descriptor["program_status"] != "Success":
        text += f", program status {descriptor['program_status']}"
    return text
