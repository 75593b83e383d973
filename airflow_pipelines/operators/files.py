"""Files of tasks: paths of this worker, and URLs that fsspec supports, with the credentials of an Airflow connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import fsspec
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException
from airflow.sdk.io.fs import get_fs, has_fs

if TYPE_CHECKING:
    from airflow.sdk import Connection


def is_url(path: str) -> bool:
    """Return True if a path is a URL.

    :param path: the path
    """
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme.replace("+", "").replace("-", "").isalnum()


def read_file(name: str, path: str, conn_id: str | None = None) -> bytes:
    """Return the contents of a file.

    :param name: the argument that names it
    :param path: its path on this worker, or its URL
    :param conn_id: the connection with the credentials for the URL
    :raises AirflowFailException: if there is no such file, or its scheme is unknown
    """
    with _name_argument_in_errors(name, path):
        system, place = _place(path, conn_id)
        if not system.isfile(place):
            raise FileNotFoundError
        content: bytes = system.cat_file(place)
        return content


def write_file(name: str, path: str, content: bytes, conn_id: str | None = None) -> None:
    """Write a file, and the folders above it.

    :param name: the argument that names it
    :param path: its path on this worker, or its URL
    :param content: the contents to write
    :param conn_id: the connection with the credentials for the URL
    :raises AirflowFailException: if the URL's scheme is unknown
    """
    with _name_argument_in_errors(name, path):
        system, place = _place(path, conn_id)
        parent = system._parent(place)
        if parent:
            system.makedirs(parent, exist_ok=True)
        system.pipe_file(place, content)


def suffix_of(path: str) -> str:
    """Return the suffix of a file's name, in lower case, with its point.

    :param path: a path or a URL
    """
    return PurePosixPath(urlsplit(path).path if is_url(path) else path).suffix.lower()


def without_password(path: str) -> str:
    """Return a path without user and password, for messages.

    :param path: a path, or a URL that may name a user and a password
    """
    user, at, _ = urlsplit(path).netloc.rpartition("@") if is_url(path) else ("", "", "")
    return path.replace(f"{user}{at}", "***@", 1) if at else path


def storage_options(connection: Connection) -> dict[str, Any]:
    """Return the options of an Airflow connection for fsspec's file systems.

    :param connection: a connection of type ``aws``; or one of another type whose extra ``storage_options`` is an object that is
        passed to the file system as it is
    :raises ValueError: if the connection has no such options
    """
    extra = connection.extra_dejson
    given = extra.get("storage_options")
    if isinstance(given, dict):
        return dict(given)
    if connection.conn_type != "aws":
        raise ValueError(
            f"connection {connection.conn_id!r} of type {connection.conn_type!r} has no extra 'storage_options', an object with "
            "what fsspec's file system is to be told"
        )
    client = {name: extra[name] for name in ("endpoint_url", "region_name") if extra.get(name)}
    options = {
        "key": connection.login or None,
        "secret": connection.password or None,
        "token": extra.get("aws_session_token"),
        "client_kwargs": client or None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _place(path: str, conn_id: str | None) -> tuple[Any, str]:
    """Return the file system that has a path, and the path there."""
    if not is_url(path):
        return fsspec.filesystem("file"), path
    if conn_id is None:
        system, place = fsspec.core.url_to_fs(path)
        return system, place
    scheme = path.partition("://")[0]
    if scheme != "file" and has_fs(scheme):
        # A provider of Airflow supports the store and its connections.
        system = get_fs(scheme, conn_id)
    else:
        system = fsspec.filesystem(scheme, **storage_options(BaseHook.get_connection(conn_id)))
    return system, system._strip_protocol(path)


@contextmanager
def _name_argument_in_errors(name: str, path: str) -> Iterator[None]:
    """Translate errors to ones that name the argument. Errors that may pass stay as they are."""
    shown = without_password(path)
    try:
        yield
    except FileNotFoundError as error:
        where = "" if is_url(path) else " on this worker"
        raise AirflowFailException(f"{name}: there is no such file{where}: {shown}") from error
    except (IsADirectoryError, PermissionError, ImportError, ValueError, AirflowNotFoundException) as error:
        raise AirflowFailException(f"{name}: {shown} cannot be used: {str(error).replace(path, shown)}") from error
