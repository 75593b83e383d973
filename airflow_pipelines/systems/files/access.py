"""File systems of paths and URLs, and the reasons why their files cannot be read."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Any, Final

from fsspec.core import url_to_fs

_NO_KEYS: Final = frozenset(
    {"NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "CredentialRetrievalError", "DefaultCredentialsError"}
)
"""The names of errors of the libraries of object stores. Each has its own, and none need be installed."""


_NAMES: Final = re.compile(
    r"""(?xi)
    \b[a-z][a-z0-9+.-]*://[^\s"'<>)]*                            # a URL
    | <(?:Resource|Key|BucketName|Bucket|RequestId|HostId)>[^<]*  # a name in an answer of S3
    | \b(?:key|bucket|location|path|object|file|table)\s('[^']*'|"[^"]*")
    | /?[\w.=%~-]+(?:/[\w.=%~-]+)+                               # a path
    """
)
"""The parts of messages that users have named, whose words say nothing about the error."""


class AccessProblem(Enum):
    """The kinds of reasons why a file of another machine cannot be read."""

    NO_KEYS = auto()
    """No keys were found."""
    REFUSED = auto()
    """The user may not read it."""
    UNREACHABLE = auto()
    """The machine is away, overloaded, or has failed."""

    @classmethod
    def of(cls, error: Exception) -> AccessProblem:
        """Return the kind of an error that a file system has raised.

        :param error: any error but that for a missing file
        """
        if type(error).__name__ in _NO_KEYS:
            return cls.NO_KEYS
        if isinstance(error, PermissionError) or "ACCESS_DENIED" in without_names(str(error)):
            return cls.REFUSED
        return cls.UNREACHABLE


class UnusablePathError(Exception):
    """A path or URL without a file system.

    :ivar lacks_package: True if another package has to be installed for it
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error).rstrip("."))
        self.lacks_package = isinstance(error, ImportError)


def file_system_of(path: str, **options: Any) -> tuple[Any, str]:
    """Return the file system of a path or URL.

    :param path: the path or URL of a file or folder
    :param options: the options of fsspec for the file system
    :returns: the file system, and the path in it
    :raises UnusablePathError: if its package is missing, or it has no file system
    """
    try:
        resolved: tuple[Any, str] = url_to_fs(path, **options)
    except (ValueError, ImportError, TypeError) as error:
        raise UnusablePathError(error) from error
    return resolved


def without_names(message: str) -> str:
    """Return the message of a store without URLs, paths and names, to look for words in it that tell the kind of the error.

    >>> without_names("error sending request for url (https://host/user_permissions/part-403.parquet)")
    'error sending request for url ()'

    :param message: the message of an error
    """
    return _NAMES.sub("", message)


def reason_of(error: Exception) -> str:
    """Return the message of an error, or its class if it has none."""
    return str(error) or type(error).__name__
