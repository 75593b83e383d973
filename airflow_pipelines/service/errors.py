"""The errors of the service, each with the contract's code and a message that says what would be allowed."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.service.records import PipelineRecord
from airflow_pipelines.service.store_failures import StoreFailure, store_failure

_ADVICE = {
    StoreFailure.CANNOT_OPEN: "check that its folder exists and that this user may write there",
    StoreFailure.READ_ONLY: "check that this user may write to the file and its folder",
    StoreFailure.NO_DATABASE: "the file is damaged or is no SQLite database: restore it from a backup or move it away",
    StoreFailure.DAMAGED: "the file is damaged: restore it from a backup or move it away",
    StoreFailure.EXISTS: "another process creates the same at this moment: try again",
}
_CODES = frozenset(code.value for code in ErrorCode)


def unknown_pipeline(name: str) -> Problem:
    """Return the error of a name that no pipeline has."""
    return Problem(ErrorCode.UNKNOWN_PIPELINE_NAME, f"There is no pipeline named '{name}'", {"pipeline_name": name})


def duplicate_name(name: str, what: str = "A pipeline") -> Problem:
    """Return the error of a name that is taken."""
    return Problem(
        ErrorCode.DUPLICATE_NAME, f"{what} named '{name}' already exists: choose another name, or modify that one", {"name": name}
    )


def invalid_param(message: str, details: Any = None) -> Problem:
    """Return the error of an invalid path, query or body parameter."""
    return Problem(ErrorCode.INVALID_PARAM, message, details)


def check_size(what: str, text: str, limit: int, advice: str) -> None:
    """Check that a text is not too large.

    :param what: a description of the text, as the beginning of a sentence
    :param text: the text
    :param limit: the maximum number of bytes in UTF-8
    :param advice: the advice to the user, as the end of a sentence
    :raises Problem: 413 when it is larger
    """
    # No character has more than four bytes, so that most texts need not be encoded.
    if 4 * len(text) > limit and (size := len(text.encode())) > limit:
        raise Problem(ErrorCode.PAYLOAD_TOO_LARGE, f"{what} has {size} bytes, more than {limit}: {advice}", {"limit": limit})


def restricted(code: ErrorCode, record: PipelineRecord, what: str, allowed: str) -> Problem:
    """Return the error of an action that the pipeline's state does not allow.

    :param code: the error code
    :param record: the pipeline
    :param what: the action that is not possible, as the beginning of a sentence
    :param allowed: the alternative, as a sentence
    """
    return Problem(code, f"{what}: pipeline '{record.name}' is {describe(record)}. {allowed}", state(record))


def not_deployed(record: PipelineRecord) -> Problem:
    """Return the error of a runtime call while there is no running incarnation."""
    return Problem(
        ErrorCode.PIPELINE_INTERACTION_NOT_DEPLOYED,
        f"Pipeline '{record.name}' is not deployed: its status is '{record.deployment_status}' and its desired status is "
        f"'{record.deployment_desired_status}'. Start it and wait until it is running or paused, then try again",
        state(record),
    )


def unavailable(record: PipelineRecord, why: str) -> Problem:
    """Return the error of a runtime call whose host does not accept calls yet."""
    return Problem(
        ErrorCode.PIPELINE_UNAVAILABLE, f"Pipeline '{record.name}' does not answer yet: {why}. Try again in a moment", state(record)
    )


def unreachable(record: PipelineRecord, why: str, log_tail: str) -> Problem:
    """Return the error of a host that was lost or broke off the call.

    :param log_tail: the last lines of a log, with a heading
    """
    return Problem(
        ErrorCode.PIPELINE_INTERACTION_UNREACHABLE,
        f"The host of pipeline '{record.name}' could not be reached: {why}{log_tail}",
        state(record),
    )


def too_slow(record: PipelineRecord, why: str) -> Problem:
    """Return the error of a host that is alive and has not answered in time."""
    return Problem(
        ErrorCode.PIPELINE_UNAVAILABLE,
        f"The host of pipeline '{record.name}' lives and is at work, but does not answer in time: {why}. Try again in a moment",
        state(record),
    )


def damaged_record(error: Exception) -> Problem:
    """Return the error of a pipeline's row in the store that cannot be read; its contents stay out of the message."""
    return Problem(
        ErrorCode.PIPELINE_RECORD_DAMAGED,
        f"The store's record of this pipeline cannot be read ({type(error).__name__}: {error}): it is damaged, or newer. "
        "Restore the store from a backup, or use the release that wrote it",
    )


def not_supported(what: str, instead: str | None = None) -> Problem:
    """Return the error of an endpoint of the contract that this release does not have.

    :param what: the endpoint, or the requested part of it
    :param instead: the reason why it cannot exist here, and what to use; None if it is only not implemented yet
    """
    reason = "" if instead is None else f": {instead}"
    return Problem(ErrorCode.NOT_SUPPORTED, f"{what} is not supported by this release{reason}", {"operation": what})


def of_host(status: int, text: str) -> Problem:
    """Return the Problem of a host's answer.

    :param status: the HTTP status of the answer
    :param text: its body
    """
    try:
        body = json.loads(text)
        code, message = body["error_code"], body["message"]
    except (ValueError, KeyError, TypeError):
        return Problem(ErrorCode.RUNNER_INTERACTION_UNREACHABLE, f"The host answered {status} without an explanation")
    if code not in _CODES:
        # A host of another release.
        return Problem(ErrorCode.RUNNER_INTERACTION_UNREACHABLE, f"The host answered {status} {code}: {message}")
    return Problem(ErrorCode(code), message, body.get("details"))


def store_unusable(error: SQLAlchemyError, url: URL) -> Problem:
    """Return the error of a database failure.

    SQL text and parameters stay out of the message, because they hold programs and tokens.

    :param error: the error of SQLAlchemy
    :param url: the address of the database
    """
    where = url.render_as_string(hide_password=True)
    cause = str(error.orig) if isinstance(error, DBAPIError) else type(error).__name__
    failure = store_failure(error)
    if failure is StoreFailure.LOCKED:
        return Problem(ErrorCode.LOCK_TOOK_TOO_LONG, f"The store {where} stayed locked by another process ({cause}). Try again")
    advice = "check that the database runs and accepts this user" if failure is None else _ADVICE[failure]
    return Problem(ErrorCode.STORE_UNAVAILABLE, f"The store {where} cannot be used ({cause}): {advice}")


def describe(record: PipelineRecord) -> str:
    """Return a pipeline's state in words, for messages."""
    status, desired = record.deployment_status, record.deployment_desired_status
    return status if status == desired else f"{status} (on its way to {desired})"


def state(record: PipelineRecord) -> dict[str, Any]:
    """Return a pipeline's state, for error details."""
    return {
        "pipeline_name": record.name,
        "status": record.deployment_status,
        "desired_status": record.deployment_desired_status,
    }
