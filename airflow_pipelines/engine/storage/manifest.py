"""Manifests as bytes. They are sealed since format 2; those of format 1 have no checksum and can still be read."""

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
CANONICAL_FORM: Final = 1
"""The version of the canonical form in which values are stored. It is part of the rules of layouts."""
_UNSEALED: Final = 1


class DamagedManifestError(DamagedError):
    """The error of a manifest whose content is not what was written.

    :param path: the manifest
    :param why: the kind of damage
    """

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, f"The checkpoint manifest {path} is damaged: {why}.")


def encode(document: Mapping[str, Any]) -> bytes:
    """Return the bytes of a manifest.

    :param document: its fields, without the format
    :returns: the bytes of the file
    """
    return seal({"format": FORMAT, **document})


def read(path: Path, expected: UUID | None) -> dict[str, Any]:
    """Return the fields of a manifest.

    :param path: the manifest
    :param expected: the expected checkpoint, if the manifest's name tells it
    :returns: the fields that :func:`encode` took
    :raises StorageError: when it cannot be read, is damaged, or is of another checkpoint
    """
    with storage_access(path):
        return decode(path.read_bytes(), path, expected)


def decode(content: bytes, path: Path, expected: UUID | None) -> dict[str, Any]:
    """Return the fields of a manifest from its bytes.

    :param content: the bytes
    :param path: the path that the bytes are from, for the error
    :param expected: see :func:`read`
    :returns: see :func:`read`
    :raises DamagedManifestError: if they are damaged, or those of another checkpoint
    """
    document = _decode(content, path)
    uuid = document.get("uuid")
    if expected is not None and uuid != str(expected):
        raise DamagedManifestError(path, f"it is that of checkpoint {uuid}")
    return document


@contextmanager
def fields_of(path: Path) -> Iterator[None]:
    """Convert errors of a manifest's fields, which may be any in the format without a checksum, to :class:`DamagedManifestError`.

    :param path: the manifest
    :raises DamagedManifestError: if a field is missing or of another type
    """
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedManifestError(path, f"a field cannot be read ({type(error).__name__}: {error})") from error


def _decode(content: bytes, path: Path) -> dict[str, Any]:
    try:
        document = unseal(content)
    except BrokenSealError as error:
        return _decode_unsealed(content, path, str(error))
    if document.get("format") != FORMAT:
        why = f"it has format {document.get('format')}, and this release knows {_UNSEALED} and {FORMAT}"
        raise DamagedManifestError(path, why)
    return document


def _decode_unsealed(content: bytes, path: Path, why: str) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError as error:
        raise DamagedManifestError(path, f"{why}, and it is not JSON ({error})") from error
    # The format of a sealed manifest is inside the seal, so no damage turns it into an unsealed manifest.
    if not isinstance(document, dict) or document.get("format") != _UNSEALED:
        raise DamagedManifestError(path, why)
    return document
