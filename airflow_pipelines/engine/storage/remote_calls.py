"""Calls to an object store, which may be slow, busy or unavailable for a moment. They are retried within a limit."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

from tenacity import retry_if_exception

from airflow_pipelines.common.retries import RetryPolicy
from airflow_pipelines.engine.errors import mask_secrets

T = TypeVar("T")

RETRIES: Final = RetryPolicy(first_wait_s=0.5, longest_wait_s=8.0, attempts=6, limit_s=120.0)
ANSWER_S: Final = 30.0
"""The timeout of one response in seconds, for clients that support one."""
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ValueError, ImportError, MemoryError)
"""The errors that a retry would end with as well."""
_FINAL_CODES = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENAMETOOLONG})

logger = logging.getLogger(__name__)


class SyncError(RuntimeError):
    """The error of a checkpoint that could not be copied to or from the object store.

    The message has the checkpoint and the cause.
    """


def remotely(what: str, call: Callable[[], T]) -> T:
    """Call an object store with retries, and return the result.

    :param what: the beginning of the error message, which says what cannot be done
    :param call: the call, which may be made more than once
    :raises SyncError: if the call failed with a final error, or every time
    """
    began = time.monotonic()
    attempts = RETRIES.retrying(
        retry_if_exception(_may_pass),
        before_sleep=lambda state: logger.warning("%s; it is tried again (attempt %d)", what, state.attempt_number),
    )
    try:
        return attempts(call)
    except SyncError:
        raise
    except Exception as error:
        tried = attempts.statistics.get("attempt_number", 1)
        again = f" It was tried {tried} times within {time.monotonic() - began:.0f} s." if tried > 1 else ""
        raise SyncError(f"{what}: {_cause(error)}{again}") from error


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in _FINAL_CODES:
        return False
    return isinstance(error, Exception) and not isinstance(error, (SyncError, *_FINAL))


def _cause(error: BaseException) -> str:
    text = mask_secrets(str(error)) or type(error).__name__
    denied = isinstance(error, PermissionError) and "SignatureDoesNotMatch" not in text
    return f"Forbidden: {text}" if denied else text
