"""Checkpoints: one manifest per checkpoint, written atomically over immutable batch files.

Layout of a pipeline's storage folder::

    lock                     held by the one host that runs the pipeline
    batches/                 immutable batch files, named by content
    checkpoints/<uuid>.json  listed checkpoints, newest two kept
    recovery.json            the unlisted recovery point, if any
    journal.log              committed steps since the newest of these (see engine/journal.py)
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from uuid6 import uuid7

from airflow_pipelines.engine.durable import TEMPORARY, remove, sync_folder, write_atomically

FORMAT = 1
KEEP = 2


class DamagedCheckpointError(RuntimeError):
    """A manifest cannot be read, or batch files that it names are gone."""


class BatchFiles(Protocol):
    """What checkpoints need of the batch store."""

    def path(self, name: str) -> Path | str:
        """Where a batch file is."""

    def garbage_collect(self, keep: set[str]) -> Any:
        """Remove all batch files but these."""


@dataclass(frozen=True, slots=True)
class Counters:
    """A pipeline's record counters (rows) as they stand after a step; input equals processed, since what waits is read again."""

    input_records: int = 0
    input_bytes: int = 0
    processed_records: int = 0
    processed_bytes: int = 0
    completed_records: int = 0
    initiated_steps: int = 0
    completed_steps: int = 0


@dataclass(frozen=True, slots=True)
class CheckpointContents:
    """Everything a pipeline needs to go on.

    ``program`` is the text and ``udf_python`` that of its Python module, ``fingerprints`` the program's JSON form, ``program_hash``
    the u64 identity of it, ``program_version`` its version (None: saved by a release that did not note it). ``snapshot`` is the
    snapshot's manifest and ``files`` the batch files it names. ``connectors`` maps ``relation.connector`` to position, metrics,
    errors and paused flag. ``initial_start_time`` is in seconds since the epoch. ``transaction`` is the transaction number, 0
    outside of one.
    """

    program: str
    fingerprints: dict[str, Any]
    program_hash: int
    step: int
    snapshot: dict[str, Any]
    files: tuple[str, ...]
    connectors: dict[str, dict[str, Any]] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    initial_start_time: float = 0.0
    transaction: int = 0
    udf_python: str = ""
    program_version: int | None = None


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A checkpoint as lists show it; ``size`` is in bytes."""

    uuid: UUID
    fingerprint: int
    size: int
    steps: int
    processed_records: int
    identifier: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """The entry of ``GET checkpoints`` and of ``storage_status_details``."""
        return {
            "uuid": str(self.uuid),
            "identifier": self.identifier,
            "fingerprint": self.fingerprint,
            "size": self.size,
            "steps": self.steps,
            "processed_records": self.processed_records,
        }


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint as read back: its id, whether it is the unlisted recovery point, and its contents."""

    uuid: UUID
    listed: bool
    contents: CheckpointContents


class CheckpointStore:
    """The checkpoints of one storage folder. Only the holder of the folder's lock writes."""

    def __init__(self, folder: Path, batches: BatchFiles) -> None:
        self.folder = folder
        self._batches = batches
        self._manifests = folder / "checkpoints"
        self._recovery = folder / "recovery.json"

    def save(self, contents: CheckpointContents) -> CheckpointInfo:
        """Write a listed checkpoint; its batch files must be on disk already. The recovery point, now older, goes.

        Returns what lists show. A kill at any moment leaves the earlier checkpoints and, at least until the new manifest is in
        place, the recovery point.
        """
        uuid = self._next_uuid()
        manifest, info = self._manifest(uuid, contents)
        write_atomically(self.manifest_path(uuid), manifest)
        self.drop_recovery_point()
        return info

    def save_recovery_point(self, contents: CheckpointContents) -> UUID:
        """Write the unlisted recovery point in place of the one before it. Returns its id."""
        uuid = self._next_uuid()
        manifest, _ = self._manifest(uuid, contents)
        write_atomically(self._recovery, manifest)
        return uuid

    def drop_recovery_point(self) -> None:
        """Remove the recovery point, if there is one."""
        if self._recovery.exists():
            remove(self._recovery)

    def latest(self) -> Checkpoint | None:
        """The newest checkpoint or recovery point, whichever is newer; None when there is neither."""
        recovery = self.recovery_point()
        ids = self._ids()
        if recovery is not None and (not ids or recovery.uuid > ids[-1]):
            return recovery
        return self.load(ids[-1]) if ids else None

    def latest_listed(self) -> CheckpointInfo | None:
        """What lists show of the newest checkpoint."""
        infos = self.listed()
        return infos[0] if infos else None

    def recovery_point(self) -> Checkpoint | None:
        """The unlisted recovery point, if there is one."""
        if not self._recovery.exists():
            return None
        return self._read(self._recovery, listed=False)

    def load(self, uuid: UUID) -> Checkpoint:
        """A listed checkpoint by its id. Raises KeyError when there is none, DamagedCheckpointError when it cannot be used."""
        path = self.manifest_path(uuid)
        if not path.exists():
            raise KeyError(f"There is no checkpoint {uuid}.")
        return self._read(path, listed=True)

    def listed(self) -> list[CheckpointInfo]:
        """All listed checkpoints, newest first."""
        return [_info(json.loads(self.manifest_path(uuid).read_bytes())) for uuid in reversed(self._ids())]

    def manifest_path(self, uuid: UUID) -> Path:
        """Where a listed checkpoint's manifest is."""
        return self._manifests / f"{uuid}.json"

    def garbage_collect(self, in_use: Iterable[str]) -> None:
        """Keep the newest two checkpoints and drop what nothing needs any more.

        ``in_use`` are the batch files of the running pipeline and of its journal; those of the kept checkpoints and the recovery
        point are added here. Manifests go before the files they name, so that no manifest is ever left without its files.
        """
        ids = self._ids()
        for uuid in ids[:-KEEP]:
            self.manifest_path(uuid).unlink(missing_ok=True)
        if self._manifests.is_dir():
            for left in self._manifests.glob(f"*{TEMPORARY}"):
                left.unlink(missing_ok=True)
            sync_folder(self._manifests)
        keep = set(in_use)
        for uuid in ids[-KEEP:]:
            keep.update(json.loads(self.manifest_path(uuid).read_bytes())["files"])
        if self._recovery.exists():
            keep.update(json.loads(self._recovery.read_bytes())["files"])
        self._batches.garbage_collect(keep)

    def _ids(self) -> list[UUID]:
        if not self._manifests.is_dir():
            return []
        return sorted(UUID(path.stem) for path in self._manifests.glob("*.json"))

    def _next_uuid(self) -> UUID:
        ids = self._ids()
        recovery = self.recovery_point()
        newest = max((*ids[-1:], *([recovery.uuid] if recovery else [])), default=None)
        fresh = UUID(int=uuid7().int)
        # A clock that was set back must not make the newest checkpoint look like an old one.
        return fresh if newest is None or fresh > newest else UUID(int=newest.int + 1)

    def _manifest(self, uuid: UUID, contents: CheckpointContents) -> tuple[bytes, CheckpointInfo]:
        size = sum(Path(self._batches.path(name)).stat().st_size for name in contents.files)
        document = {"format": FORMAT, "uuid": str(uuid), "created_at": time.time(), "size": size, **asdict(contents)}
        return json.dumps(document, separators=(",", ":")).encode(), _info(document)

    def _read(self, path: Path, *, listed: bool) -> Checkpoint:
        try:
            document = json.loads(path.read_bytes())
        except ValueError as error:
            raise DamagedCheckpointError(f"The checkpoint manifest {path} is not readable: {error}") from error
        if document.get("format") != FORMAT:
            raise DamagedCheckpointError(f"The checkpoint manifest {path} has format {document.get('format')}, expected {FORMAT}.")
        missing = [name for name in document["files"] if not Path(self._batches.path(name)).exists()]
        if missing:
            raise DamagedCheckpointError(f"The checkpoint {path} needs batch files that are gone: {', '.join(missing[:5])}")
        contents = CheckpointContents(
            program=document["program"],
            fingerprints=document["fingerprints"],
            program_hash=document["program_hash"],
            step=document["step"],
            snapshot=document["snapshot"],
            files=tuple(document["files"]),
            connectors=document["connectors"],
            counters=Counters(**document["counters"]),
            initial_start_time=document["initial_start_time"],
            transaction=document["transaction"],
            udf_python=document.get("udf_python", ""),
            program_version=document.get("program_version"),
        )
        return Checkpoint(UUID(document["uuid"]), listed, contents)


def _info(document: dict[str, Any]) -> CheckpointInfo:
    return CheckpointInfo(
        uuid=UUID(document["uuid"]),
        fingerprint=document["program_hash"],
        size=document["size"],
        steps=document["step"],
        processed_records=document["counters"]["processed_records"],
    )
