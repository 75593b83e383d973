"""Secrets in a folder of their own, one file each, as Docker and Kubernetes mount them.

A program or a configuration names a secret as ``${secret:NAME}``, and the host reads the file when it needs the value. So the value
itself is in no database, checkpoint, answer or log. Folders and files are for this user alone.
"""

from __future__ import annotations

import hmac
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from airflow_pipelines.common.private_files import make_private_folder, private_opener

MAX_SECRET_BYTES: Final = 64 * 1024
"""The maximum size of one secret, in bytes."""
OWN: Final = "pipelines"
"""The folder of the secrets that belong to one pipeline each, as ``pipelines/ID/NUMBER``."""
_UNUSED_FOR_S: Final = 3600.0
"""The number of seconds for which an unused secret of a pipeline is kept: its name may not have been stored yet."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*){0,3}")
_MAX_NAME: Final = 255


class SecretError(LookupError):
    """The error of a secret that cannot be read or stored. The message names it and says what to do; it never has the value."""


class SecretFiles:
    """The secrets under one folder. Thread-safe, also between processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> str:
        """Return the value of a secret.

        :param name: its name, parts separated by ``/``; ``kubernetes:NAME/KEY`` is ``kubernetes/NAME/KEY``
        :raises SecretError: when there is no such secret, or it cannot be read
        """
        path = self._path(name)
        try:
            return path.read_bytes().decode()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise SecretError(
                f"There is no secret {name!r}: the file {path} would have it. Write it with 'airflow-pipelines secrets set {name}'"
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
            raise SecretError(f"The secret {name!r} cannot be read from {path}: {reason}") from error

    def write(self, name: str, value: str) -> None:
        """Create a secret or replace its value. Concurrent readers get the old value or the new one.

        :param name: name of the secret
        :param value: its value, at most :data:`MAX_SECRET_BYTES` in UTF-8
        :raises SecretError: when the name is invalid, the value is too large, or the file cannot be written
        """
        path = self._path(name)
        try:
            content = value.encode()
        except UnicodeEncodeError as error:
            raise SecretError(f"The secret {name!r} is no text: it has half of a character") from error
        if len(content) > MAX_SECRET_BYTES:
            raise SecretError(f"The secret {name!r} has {len(content)} bytes; at most {MAX_SECRET_BYTES} are allowed")
        temporary = path.with_name(f".{path.name}.{uuid4().hex}")
        try:
            for folder in (self._folder, *reversed(path.relative_to(self._folder).parents[:-1])):
                make_private_folder(self._folder / folder)
            with open(temporary, "xb", opener=private_opener) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            with suppress(OSError):
                temporary.unlink()
            raise SecretError(f"The secret {name!r} cannot be written to {path}: {error.strerror or error}") from error

    def delete(self, name: str) -> None:
        """Delete a secret.

        :raises SecretError: when there is none, or it cannot be deleted
        """
        path = self._path(name)
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise SecretError(f"There is no secret {name!r}") from error
        except OSError as error:
            raise SecretError(f"The secret {name!r} cannot be removed: {error.strerror or error}") from error

    def names(self) -> list[str]:
        """Return the names of the secrets that people made, without those that pipelines own."""
        return sorted(name for name in self._iterate_names(self._folder) if not name.startswith(f"{OWN}/"))

    def keep(self, owner: str, value: str) -> str:
        """Store a secret of a pipeline; a value that the pipeline already has is not stored twice.

        :param owner: the pipeline's id
        :returns: the secret's name
        :raises SecretError: when it cannot be written
        """
        for name in self._iterate_names(self._folder / OWN / owner):
            path = self._path(name)
            try:
                if hmac.compare_digest(path.read_bytes(), value.encode("utf-8", "surrogatepass")):
                    os.utime(path)
                    return name
            except FileNotFoundError:
                continue
        name = f"{OWN}/{owner}/{uuid4().hex[:12]}"
        self.write(name, value)
        return name

    def forget_unused(self, owner: str, used: Iterable[str]) -> None:
        """Delete the secrets of a pipeline that have been unused for an hour.

        :param used: the names that are in use
        """
        needed = set(used)
        for name in self._iterate_names(self._folder / OWN / owner):
            path = self._path(name)
            if name not in needed and _age_s(path) > _UNUSED_FOR_S:
                path.unlink(missing_ok=True)

    def forget_all(self, owner: str) -> None:
        """Delete all secrets of a pipeline.

        :param owner: the pipeline's id
        """
        shutil.rmtree(self._folder / OWN / owner, ignore_errors=True)

    def _path(self, name: str) -> Path:
        path = name.replace(":", "/", 1)
        if len(path) > _MAX_NAME or not _NAME.fullmatch(path):
            raise SecretError(
                f"{name!r} is no name of a secret: use letters, digits, . _ - (no part begins with a dot), and up to three /"
            )
        return self._folder / path

    def _iterate_names(self, folder: Path) -> Iterator[str]:
        for parent, folders, files in os.walk(folder, followlinks=True):
            # Kubernetes mounts its files through hidden folders.
            folders[:] = [name for name in folders if not name.startswith(".")]
            for file in files:
                name = Path(parent, file).relative_to(self._folder).as_posix()
                if _NAME.fullmatch(name):
                    yield name


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
