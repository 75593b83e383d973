"""Manifests as bytes: sealed since format 2; those of format 1 have no checksum and still open."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from airflow_pipelines.engine.storage.errors import DamagedError, storage_access
from airflow_pipelines.engine.storage.sealed_json import BrokenSealError, seal, unseal

FORMAT: Final = 2
_UNSEALED: Final = 1


class DamagedManifestError(DamagedError):
    """A manifest is not what was written.

    :param path: the manifest
    :param why: what is wrong with it
    """

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, f"The checkpoint manifest {path} is damaged: {why}.")


def encode(document: Mapping[str, Any]) -> bytes:
    """A manifest as it is written.

    :param document: its fields, without the format
    :returns: the bytes of the file
    """
    return seal({"format": FORMAT, **document})


def read(path: Path, expected: UUID | None) -> dict[str, Any]:
    """The fields of a manifest.

    :param path: the manifest
    :param expected: the checkpoint that it should be of, where its name says so
    :returns: the fields that :func:`encode` took
    :raises StorageError: when it cannot be read, is damaged, or is of another checkpoint
    """
    with storage_access(path):
        return decode(path.read_bytes(), path, expected)


def decode(content: bytes, path: Path, expected: UUID | None) -> dict[str, Any]:
    """The same for the bytes of a manifest.

    :param content: the bytes
    :param path: where they are from, for the error
    :param expected: see :func:`read`
    :returns: see :func:`read`
    :raises DamagedManifestError: when they are damaged, or of another checkpoint
    """
    document = _decoded(content, path)
    found = document.get("uuid")
    if expected is not None and found != str(expected):
        raise DamagedManifestError(path, f"it is that of checkpoint {found}")
    return document


@contextmanager
def fields_of(path: Path) -> Iterator[None]:
    """For taking the fields of a manifest: those of the format without a checksum may be any.

    :param path: the manifest
    :raises DamagedManifestError: when one is missing or of another type
    """
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedManifestError(path, f"a field cannot be read ({type(error).__name__}: {error})") from error


def _decoded(content: bytes, path: Path) -> dict[str, Any]:
    try:
        document = unseal(content)
    except BrokenSealError as error:
        return _unsealed(content, path, str(error))
    if document.get("format") != FORMAT:
        why = f"it has format {document.get('format')}, and this release knows {_UNSEALED} and {FORMAT}"
        raise DamagedManifestError(path, why)
    return document


def _unsealed(content: bytes, path: Path, why: str) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError as error:
        raise DamagedManifestError(path, f"{why}, and it is not JSON ({error})") from error
    # A sealed manifest has its format within, so that no damage makes one without a seal out of it.
    if not isinstance(document, dict) or document.get("format") != _UNSEALED:
        raise DamagedManifestError(path, why)
    return document
