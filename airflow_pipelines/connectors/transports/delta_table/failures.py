"""The translation of the client library's errors into failures of a connector."""

from __future__ import annotations

import re

from airflow_pipelines.connectors.base import ConnectorFailure, TransientConnectorFailure
from airflow_pipelines.systems.files.access import without_names

_REFUSED_ROWS = "failed validation check"
_COLOURS = re.compile("\x1b\\[[0-9;]*m")
_DENIED = re.compile(
    r"(?i)denied|forbidden|unauthori[sz]ed|signature|credential|InvalidAccessKey|permission|status\D{0,30}40[13]\b"
)
_UNREACHABLE = re.compile(
    r"(?i)error sending request|connection|connect error|timed? ?out|dns|broken pipe|reset by peer|unavailable"
    r"|status\D{0,30}50[0-9]\b|\b50[0-9] (Internal|Bad|Gateway)"
)
_FULL = re.compile(r"(?i)no space left|quota exceeded|disk full")
_GONE = re.compile(r"(?i)not ?found|no such (file|key)|does not exist|status\D{0,30}404\b")


def in_words(error: BaseException) -> str:
    """Return an error's message on one line; the client library draws trees."""
    lines = [_COLOURS.sub("", line).strip().lstrip("↳").strip() for line in str(error).splitlines()]
    return ": ".join(line for line in lines if line) or type(error).__name__


def is_missing(error: BaseException) -> bool:
    """Return True if an error says that a file does not exist."""
    return isinstance(error, FileNotFoundError) or _says(_GONE, error)


def is_denied(error: BaseException) -> bool:
    """Return True if an error says that the store denies access."""
    return isinstance(error, PermissionError) or _says(_DENIED, error)


def is_of_store(error: BaseException) -> bool:
    """Return True if an error comes from the store of the table, whatever is written."""
    if _REFUSED_ROWS in str(error):
        # The message quotes some rows, which may contain any text.
        return False
    return is_denied(error) or is_missing(error) or _says(_FULL, error) or _says(_UNREACHABLE, error)


def _says(pattern: re.Pattern[str], error: BaseException) -> bool:
    """Return True if a message has the words of a kind of errors, apart from names of files."""
    return pattern.search(without_names(str(error))) is not None


def failure(what: str, error: BaseException) -> ConnectorFailure:
    """Return the failure of a connector for an error of the client library.

    :param what: a text with the connector, the table and what it was doing
    """
    text = in_words(error)
    if is_denied(error):
        return ConnectorFailure(
            f"{what}: the store refuses: {text}. Check the storage options, above all keys, region and endpoint."
        )
    if _says(_FULL, error):
        return TransientConnectorFailure(f"{what}: {text}. It is tried again; make room there.")
    if _says(_UNREACHABLE, error):
        return TransientConnectorFailure(
            f"{what}: {text}. It is tried again; check that the store runs and can be reached from here."
        )
    return ConnectorFailure(f"{what}: {text}")
