"""File systems of URLs, by fsspec, with errors that are meaningful to the author of the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Final

from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.systems.files.access import AccessProblem, UnusablePathError, file_system_of, reason_of

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
        return file_system_of(path)
    except UnusablePathError as error:
        if error.lacks_package:
            raise StreamProgramError(
                f"{path!r} cannot be read without another package: {error}. Install it, or name it with set_python_requirements()."
            ) from None
        raise StreamProgramError(f"{path!r} is no file, folder or URL of a file system: {error}.") from None


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
        reason = reason_of(error)
        match AccessProblem.of(error):
            case AccessProblem.NO_KEYS:
                raise StreamProgramError(f"There are no keys for {path!r}: {reason}. {_WHERE_KEYS_ARE}.") from None
            case AccessProblem.REFUSED:
                raise StreamProgramError(f"{path!r} may not be read: {reason}. {_WHERE_KEYS_ARE}.") from None
            case AccessProblem.UNREACHABLE:
                raise StreamProgramError(f"{path!r} cannot be read: {reason}") from error
