"""File systems of URLs, by fsspec, whose errors are told in the words of the program."""

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
    """The file system of a path or URL.

    :param path: where a file or folder is
    :returns: the file system, and the path in it
    :raises StreamProgramError: when no library for it is there, or the URL is none of a file system
    """
    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(path)
    except ImportError as error:
        raise StreamProgramError(
            f"{path!r} cannot be read without another package: {error}. Install it, or name it with set_python_requirements()."
        ) from None
    except ValueError as error:
        raise StreamProgramError(f"{path!r} is no file, folder or URL of a file system: {error}.") from None
    return found


def open_file(path: str) -> IO[bytes]:
    """Open a file to read it.

    :param path: the file
    :returns: its bytes
    :raises FileNotFoundError: when it is not there
    :raises StreamProgramError: when it cannot be read
    """
    system, plain_path = file_system(path)
    with access(path):
        file: IO[bytes] = system.open(plain_path, "rb")
    return file


@contextmanager
def access(path: str) -> Iterator[None]:
    """Say what is wrong when what is behind a URL cannot be had. Errors of this machine's own files say it themselves.

    :param path: what is asked for
    :raises StreamProgramError: when whoever asks may not have it, or its machine does not answer
    """
    try:
        yield
    except (StreamProgramError, FileNotFoundError):
        raise
    except Exception as error:
        if "://" not in path or path.startswith("file:"):
            raise
        # Each file system has errors of its own for the same things.
        reason = str(error) or type(error).__name__
        if type(error).__name__ in _NO_KEYS:
            raise StreamProgramError(f"There are no keys for {path!r}: {reason}. {_WHERE_KEYS_ARE}.") from None
        if isinstance(error, PermissionError):
            raise StreamProgramError(f"{path!r} may not be read: {reason}. {_WHERE_KEYS_ARE}.") from None
        raise StreamProgramError(f"{path!r} cannot be read: {reason}") from error
