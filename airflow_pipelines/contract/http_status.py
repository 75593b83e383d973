"""The HTTP status of each error: one table for the service and its hosts."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from airflow_pipelines.contract.error_codes import ErrorCode

_CODES: Final[Mapping[HTTPStatus, tuple[ErrorCode, ...]]] = {
    HTTPStatus.BAD_REQUEST: (
        ErrorCode.CYCLIC_DEPENDENCY,
        ErrorCode.EMPTY_START_AFTER,
        ErrorCode.HTTP_ERROR,
        ErrorCode.AD_HOC_QUERY_ERROR,
        ErrorCode.BOOTSTRAP_NOT_ALLOWED,
        ErrorCode.BOOTSTRAP_POLICY_IMMUTABLE_UNLESS_STOPPED,
        ErrorCode.CANNOT_RENAME_NON_EXISTING_PIPELINE,
        ErrorCode.CANNOT_START_WHILE_CLEARING_STORAGE,
        ErrorCode.CANNOT_START_WITH_COMPILATION_ERROR,
        ErrorCode.CANNOT_START_WITH_UNDISMISSED_ERROR,
        ErrorCode.CHECKPOINT_PUSH_ERROR,
        ErrorCode.CLIENT_DISCONNECTED,
        ErrorCode.DELETE_RESTRICTED_TO_CLEARED_STORAGE,
        ErrorCode.DELETE_RESTRICTED_TO_FULLY_STOPPED,
        ErrorCode.DISMISS_ERROR_RESTRICTED_TO_FULLY_STOPPED,
        ErrorCode.EDIT_RESTRICTED_TO_CLEARED_STORAGE,
        ErrorCode.EMPTY_NAME,
        ErrorCode.EMPTY_PROGRAM,
        ErrorCode.FROM_CHECKPOINT_IMMUTABLE_UNLESS_STOPPED,
        ErrorCode.ILLEGAL_PIPELINE_ACTION,
        ErrorCode.INCARNATION_UUID_MISMATCH,
        ErrorCode.INITIAL_IMMUTABLE_UNLESS_STOPPED,
        ErrorCode.INITIAL_STANDBY_NOT_ALLOWED,
        ErrorCode.INVALID_ACTIVATE_STATUS,
        ErrorCode.INVALID_BOOTSTRAP_CONFIG,
        ErrorCode.INVALID_CONNECTOR_ACTION,
        ErrorCode.INVALID_NEW_PROGRAM_SQL,
        ErrorCode.INVALID_PARAM,
        ErrorCode.INVALID_PROGRAM_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_RUNTIME_CONFIG,
        ErrorCode.INVALID_RUNTIME_VERSION,
        ErrorCode.INVALID_SUPPORT_BUNDLE_PARAMETER,
        ErrorCode.INVALID_TAG,
        ErrorCode.INVALID_TRANSITION,
        ErrorCode.INVALID_TRANSPORT_CONFIG,
        ErrorCode.NAME_DOES_NOT_MATCH_PATTERN,
        ErrorCode.NO_TRANSACTION_IN_PROGRESS,
        ErrorCode.PARSE_ERRORS,
        ErrorCode.SQL_ERROR,
        ErrorCode.START_FAILED_DUE_TO_FAILED_COMPILATION,
        ErrorCode.STORAGE_REQUIRED,
        ErrorCode.STORAGE_STATUS_IMMUTABLE_UNLESS_STOPPED,
        ErrorCode.TOO_LONG_DESCRIPTION,
        ErrorCode.TOO_LONG_NAME,
        ErrorCode.TOO_MANY_TAGS,
        ErrorCode.UNKNOWN_INPUT_FORMAT,
        ErrorCode.UNKNOWN_INPUT_TRANSPORT,
        ErrorCode.UNKNOWN_OUTPUT_FORMAT,
        ErrorCode.UNKNOWN_OUTPUT_TRANSPORT,
        ErrorCode.UPDATE_RESTRICTED_TO_STOPPED,
    ),
    HTTPStatus.UNAUTHORIZED: (
        ErrorCode.INVALID_HOST_TOKEN,
        ErrorCode.UNAUTHORIZED,
    ),
    HTTPStatus.FORBIDDEN: (
        ErrorCode.HOST_NOT_ALLOWED,
        ErrorCode.ORIGIN_NOT_ALLOWED,
        ErrorCode.SCOPE_EXCEEDED,
    ),
    HTTPStatus.NOT_FOUND: (
        ErrorCode.UNKNOWN_INPUT_STREAM,
        ErrorCode.UNKNOWN_OUTPUT_STREAM,
        ErrorCode.NO_PIPELINE_MONITOR_EVENTS_AVAILABLE,
        ErrorCode.PROGRAM_NOT_COMPILED,
        ErrorCode.UNKNOWN_API_KEY,
        ErrorCode.UNKNOWN_CLUSTER_MONITOR_EVENT,
        ErrorCode.UNKNOWN_DEPLOYMENT,
        ErrorCode.UNKNOWN_ENDPOINT,
        ErrorCode.UNKNOWN_INPUT_ENDPOINT,
        ErrorCode.UNKNOWN_OUTPUT_ENDPOINT,
        ErrorCode.UNKNOWN_PIPELINE_MONITOR_EVENT,
        ErrorCode.UNKNOWN_PIPELINE_NAME,
        ErrorCode.UNKNOWN_SECRET,
    ),
    HTTPStatus.METHOD_NOT_ALLOWED: (
        ErrorCode.METHOD_NOT_ALLOWED,
        ErrorCode.UNSUPPORTED_PIPELINE_ACTION,
    ),
    HTTPStatus.REQUEST_TIMEOUT: (ErrorCode.REQUEST_TIMEOUT,),
    HTTPStatus.CONFLICT: (
        ErrorCode.BOOTSTRAP_REJECTED,
        ErrorCode.DUPLICATE_NAME,
        ErrorCode.HOST_IN_USE,
        ErrorCode.STREAM_ENDED,
        ErrorCode.TRANSACTION_IN_PROGRESS,
    ),
    HTTPStatus.GONE: (
        ErrorCode.OUTPUT_FAILED,
        ErrorCode.PIPELINE_RESTARTED,
        ErrorCode.TERMINATING,
        ErrorCode.UNKNOWN_ENDPOINT_IN_COMPLETION_TOKEN,
    ),
    HTTPStatus.PRECONDITION_FAILED: (ErrorCode.UNEXPECTED_PROGRAM,),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: (ErrorCode.PAYLOAD_TOO_LARGE,),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: (ErrorCode.UNSUPPORTED_MEDIA_TYPE,),
    HTTPStatus.UNPROCESSABLE_ENTITY: (ErrorCode.COMPILER_FAILED,),
    HTTPStatus.TOO_MANY_REQUESTS: (ErrorCode.API_CONNECTION_LIMIT,),
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: (ErrorCode.REQUEST_HEADER_TOO_LARGE,),
    HTTPStatus.INTERNAL_SERVER_ERROR: (
        ErrorCode.AUTOMATON_PROVISIONING_TIMEOUT,
        ErrorCode.CHECKPOINT_FAILED,
        ErrorCode.CHECKPOINT_FETCH_ERROR,
        ErrorCode.INTERNAL_ERROR,
        ErrorCode.PIPELINE_RECORD_DAMAGED,
        ErrorCode.HOST_LOST,
        ErrorCode.STORAGE_DAMAGED,
        ErrorCode.STORAGE_ERROR,
        ErrorCode.STORAGE_FULL,
        ErrorCode.STORAGE_LOCKED,
        ErrorCode.STORAGE_MISSING,
        ErrorCode.STORAGE_READ_ONLY,
        ErrorCode.UNKNOWN_ERROR,
        ErrorCode.WORKER_PANIC,
        ErrorCode.STORAGE_CLEAR_FAILED,
        ErrorCode.SUSPEND_ERROR,
    ),
    HTTPStatus.NOT_IMPLEMENTED: (ErrorCode.NOT_SUPPORTED,),
    HTTPStatus.BAD_GATEWAY: (ErrorCode.RUNNER_INTERACTION_UNREACHABLE,),
    HTTPStatus.SERVICE_UNAVAILABLE: (
        ErrorCode.AWAITING_APPROVAL,
        ErrorCode.BOOTSTRAP_IN_PROGRESS,
        ErrorCode.COMPILER_UNAVAILABLE,
        ErrorCode.INITIALIZING,
        ErrorCode.LOCK_TOOK_TOO_LONG,
        ErrorCode.PIPELINE_INTERACTION_NOT_DEPLOYED,
        ErrorCode.PIPELINE_INTERACTION_UNREACHABLE,
        ErrorCode.PIPELINE_UNAVAILABLE,
        ErrorCode.RESTORE_IN_PROGRESS,
        ErrorCode.STANDBY,
        ErrorCode.STORE_UNAVAILABLE,
        ErrorCode.SUSPENDED,
    ),
    HTTPStatus.GATEWAY_TIMEOUT: (ErrorCode.COMPILER_TIMEOUT,),
}

_STATUS: Final[Mapping[ErrorCode, HTTPStatus]] = {code: status for status, codes in _CODES.items() for code in codes}


def http_status(code: ErrorCode) -> int:
    """Return the HTTP status of an answer with an error code.

    :param code: the error's code
    :returns: the status
    """
    return _STATUS[code].value
