"""File systems of URLs, by fsspec, with errors that are meaningful to the author of the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final

import fsspec

from airflow_pipelines.streams.errors import StreamProgramError

_NO_KEYS: Final = frozenset(
    {"NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "CredentialRetrievalError", "DefaultCredentialsError"}
)
_WHERE_KEYS_ARE: Final = (
    "A program that runs by itself has them in its environment or in the files of its user, such as AWS_ACCESS_KEY_ID and"
    " AWS_SECRET_ACCESS_KEY or ~/.aws/credentials for s3; a pipeline has them in `env` of its runtime configuration, or in the"
    " environment of its host. FSSPEC_S3_ANON=true reads what everybody may read"
)


def file_system(path: str) -> tuple[Any, str]:
    """Return the file system of a path or URL.

    :param path: the path or URL of a file or folder
    :returns: the file system, and the path in it
    :raises StreamProgramError: if the library for it is missing, or the URL has no file system
    """
    try:
        resolved: tuple[Any, str] = fsspec.core.url_to_fs(path)
    except ImportError as error:
        raise StreamProgramError(
            f"{path!r} cannot be read without another package: {error}. Install it, or name it with set_python_requirements()."
        ) from None
    except ValueError as error:
        raise StreamProgramError(f"{path!r} is no file, folder or URL of a file system: {error}.") from None
    return resolved


def open_file(path: str) -> IO[bytes]:
    """Open a file to read it.

    :param path: the path or URL of the file
    :returns: its bytes
    :raises FileNotFoundError: if it does not exist
    :raises StreamProgramError: if it cannot be read
    """
    system, plain_path = file_system(path)
    with access(path):
        file: IO[bytes] = system.open(plain_path, "rb")
    return file


@contextmanager
def access(path: str) -> Iterator[None]:
    """Explain errors of remote file systems while the context lasts. Errors of local files are passed through unchanged.

    :param path: the path or URL that is accessed
    :raises StreamProgramError: if access is denied, or the remote host does not answer
    """
    try:
        yield
    except (StreamProgramError, FileNotFoundError):
        raise
    except Exception as error:
        if "://" not in path or path.startswith("file:"):
            raise
        # Each file system has its own errors for the same problems.
        reason = str(error) or type(error).__name__
        if type(error).__name__ in _NO_KEYS:
            raise StreamProgramError(f"There are no keys for {path!r}: {reason}. {_WHERE_KEYS_ARE}.") from None
        if isinstance(error, PermissionError):
            raise StreamProgramError(f"{path!r} may not be read: {reason}. {_WHERE_KEYS_ARE}.") from None
        raise StreamProgramError(f"{path!r} cannot be read: {reason}") from error
