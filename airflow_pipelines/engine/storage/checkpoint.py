"""Checkpoints: one manifest per checkpoint, written atomically over immutable batch files.

Layout of a pipeline's storage folder::

    lock                     held by the one host that runs the pipeline
    batches/                 immutable batch files, named by content
    checkpoints/<uuid>.json  listed checkpoints, newest two kept
    recovery.json            the unlisted recovery point, if any
    epoch.json               the newest run of the pipeline (see engine/storage/fence.py)
    newest.json              a note of the checkpoint or recovery point that was written last
    journal.log              committed steps since the newest of these (see engine/storage/journal.py)
    journal.end              the number of acknowledged records of the journal (see engine/storage/journal_end.py)
    outputs/                 progress of the outputs that can take steps back, a file for each with the epoch of its run
    set-aside/<uuid>/        files newer than a checkpoint that the pipeline went back to (see engine/storage/set_aside.py)
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from uuid6 import uuid7

from airflow_pipelines.engine.storage import manifest
from airflow_pipelines.engine.storage.connector_state import ConnectorState, read_connectors, stored_connectors
from airflow_pipelines.engine.storage.durable import TEMPORARY, remove, sync_folder, write_atomically
from airflow_pipelines.engine.storage.errors import MissingError, StorageError, storage_access
from airflow_pipelines.engine.storage.fence import Fence
from airflow_pipelines.engine.storage.sealed_json import BrokenSealError, seal, unseal
from airflow_pipelines.program.identity import ProgramIdentity

KEEP = 2
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

log = logging.getLogger(__name__)


class BatchFiles(Protocol):
    """The part of the batch store that checkpoints need."""

    def path(self, name: str) -> Path | str:
        """Return the path of a batch file."""

    def verify(self, names: Iterable[str]) -> None:
        """Verify that batch files are complete and undamaged, as far as the store is configured to.

        :raises StorageError: when one is missing or damaged
        """

    def garbage_collect(self, keep: set[str]) -> Any:
        """Remove all batch files except ``keep``."""


@dataclass(frozen=True, slots=True)
class Counters:
    """A pipeline's record counters (rows) after a step. Input equals processed, since pending records are read again.

    :param transactions: the number of the last committed transaction
    """

    input_records: int = 0
    input_bytes: int = 0
    processed_records: int = 0
    processed_bytes: int = 0
    completed_records: int = 0
    initiated_steps: int = 0
    completed_steps: int = 0
    transactions: int = 0

    def to_stored(self) -> dict[str, Any]:
        """Return the fields of a manifest and of a journal record. The transactions have a field of their own there."""
        counters = asdict(self)
        return {"transaction": counters.pop("transactions"), "counters": counters}

    @classmethod
    def from_stored(cls, fields: Mapping[str, Any]) -> Counters:
        """Return the counters that :meth:`to_stored` wrote, among other fields.

        :raises KeyError: if a field is missing that all releases write
        """
        return cls(**fields["counters"], transactions=fields.get("transaction", 0))


@dataclass(frozen=True, slots=True)
class CheckpointContents:
    """Everything a pipeline needs to resume.

    :param program: the program that wrote it
    :param snapshot: the snapshot's manifest
    :param files: the batch files that the manifest names
    :param connectors: the state of each connector by ``relation.connector``
    :param initial_start_time: the time of the pipeline's first start, in seconds since the epoch
    :param push_keys: the keys of the pushes of the last days, oldest first, each with the time of its push in seconds since the
        epoch
    """

    program: ProgramIdentity
    step: int
    snapshot: dict[str, Any]
    files: tuple[str, ...]
    connectors: dict[str, ConnectorState] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    initial_start_time: float = 0.0
    push_keys: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """A checkpoint as lists show it; ``size`` is in bytes."""

    uuid: UUID
    fingerprint: int
    size: int
    steps: int
    processed_records: int

    def to_wire(self) -> dict[str, Any]:
        """Return the entry of ``GET checkpoints`` and of ``storage_status_details``."""
        return {
            "uuid": str(self.uuid),
            "identifier": None,
            "fingerprint": self.fingerprint,
            "size": self.size,
            "steps": self.steps,
            "processed_records": self.processed_records,
        }


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint as read back: its id, a flag for listed ones, its contents, and the epoch of the run that wrote it."""

    uuid: UUID
    listed: bool
    contents: CheckpointContents
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class NewestNote:
    """A record of the newest checkpoint or recovery point, by which its loss is noticed."""

    uuid: UUID
    listed: bool
    step: int
    processed_records: int


class CheckpointStore:
    """The checkpoints of one storage folder. Only the holder of the folder's lock writes."""

    def __init__(self, folder: Path, batches: BatchFiles) -> None:
        self.folder = folder
        self._batches = batches
        self._manifests = folder / "checkpoints"
        self._recovery = folder / "recovery.json"
        self._newest = folder / "newest.json"
        self.fence: Fence | None = None
        """The epoch of the run that writes; None for readers."""
        self._own: set[UUID] | None = None
        """The valid checkpoints, which the run has found or written; None if all on disk are."""

    def begin(self, fence: Fence) -> None:
        """Begin writing as the current run, with the checkpoints that are there now.

        Checkpoints that an overtaken run adds later are not listed, and the next :meth:`garbage_collect` removes them.

        :param fence: the run's epoch
        """
        self.fence = fence
        self._own = set(self._on_disk())

    def adopt(self, uuid: UUID) -> None:
        """Add a manifest that was copied here to the run's checkpoints.

        :param uuid: its checkpoint
        """
        if self._own is not None:
            self._own.add(uuid)

    def disown(self, uuids: Iterable[UUID]) -> None:
        """Remove leftovers of an overtaken run from the run's checkpoints.

        :param uuids: the checkpoints
        """
        self._own = set(self._on_disk() if self._own is None else self._own).difference(uuids)

    def save(self, contents: CheckpointContents) -> CheckpointInfo:
        """Write a listed checkpoint, and remove the recovery point, which is now older. The batch files must be on disk already.

        A kill at any moment leaves the earlier checkpoints and, at least until the new manifest is in place, the recovery point.

        :returns: the entry of the checkpoint in lists
        :raises StorageError: when it cannot be written
        """
        uuid = self._next_uuid()
        with storage_access(self.manifest_path(uuid)):
            document = self._document(uuid, contents)
            self._write(self.manifest_path(uuid), document)
            self.adopt(uuid)
            self._note(document)
            self.drop_recovery_point()
        return _info(document)

    def save_recovery_point(self, contents: CheckpointContents) -> UUID:
        """Write the unlisted recovery point, which replaces the one before it.

        :returns: the id of the recovery point
        """
        uuid = self._next_uuid()
        with storage_access(self._recovery):
            document = self._document(uuid, contents)
            self._write(self._recovery, document)
            self._note(document)
        return uuid

    def drop_recovery_point(self) -> None:
        """Remove the recovery point, if there is one.

        :raises OvertakenError: if it may be that of a later run
        """
        if self._recovery.exists():
            self._guard()
            remove(self._recovery)

    def latest(self) -> Checkpoint | None:
        """Return the newest checkpoint or recovery point, whichever is newer, or None if there is neither.

        :raises StorageError: if it is damaged, or if a newer one is missing
        """
        noted = self.read_note()
        ids = self._ids()
        recovery = self.recovery_point()
        newest = max((*ids[-1:], *([] if recovery is None else [recovery.uuid])), default=None)
        if noted is not None and (newest is None or newest < noted.uuid):
            path = self.manifest_path(noted.uuid) if noted.listed else self._recovery
            what = f"{noted.uuid}, of step {noted.step} with {noted.processed_records} processed records, is missing: {path}"
            raise MissingError(path, f"The {'checkpoint' if noted.listed else 'recovery point'} {what}.")
        if recovery is not None and recovery.uuid == newest:
            return recovery
        return None if newest is None else self.load(newest)

    def read_note(self) -> NewestNote | None:
        """Return the record of the newest checkpoint or recovery point, or None if it is not known."""
        if not self._newest.exists():
            return None
        try:
            with storage_access(self._newest):
                document = unseal(self._newest.read_bytes())
            return NewestNote(**document | {"uuid": UUID(document["uuid"])})
        except (BrokenSealError, KeyError, TypeError) as error:
            # The manifests tell the same, and have checksums of their own.
            log.warning("%s is damaged and is not used: %s", self._newest, error)
            return None

    def left_over(self, epoch: int, base: UUID | None) -> set[UUID]:
        """Return the checkpoints that an overtaken run wrote after a later run had begun from an older one.

        They were never acknowledged: otherwise :meth:`read_note` would have them.

        :param epoch: the epoch of the later run
        :param base: the checkpoint that it began from; None for an empty pipeline
        :returns: listed checkpoints, which no start may use
        """
        noted = self.read_note()
        if noted is None and self._newest.exists():
            return set()
        known = [uuid for uuid in (base, None if noted is None else noted.uuid) if uuid is not None]
        newer = [uuid for uuid in self._ids() if all(uuid > other for other in known)]
        return {uuid for uuid in newer if self._epoch(self.manifest_path(uuid), uuid) < epoch}

    def note(self, newest: Checkpoint) -> None:
        """Record this as the newest checkpoint."""
        counters = newest.contents.counters
        self._write_note(NewestNote(newest.uuid, newest.listed, newest.contents.step, counters.processed_records))

    def manifests(self) -> list[tuple[Path, UUID | None]]:
        """Return all manifests with the ids of their checkpoints, newest first.

        The recovery point, if any, comes first, with None.
        """
        recovery: list[tuple[Path, UUID | None]] = [(self._recovery, None)] if self._recovery.exists() else []
        return [*recovery, *((self.manifest_path(uuid), uuid) for uuid in reversed(self._ids()))]

    def newer_than(self, uuid: UUID) -> list[Path]:
        """Return the recovery point's manifest and those of all checkpoints after one, newest first."""
        return [self._recovery, *(self.manifest_path(other) for other in reversed(self._on_disk()) if other > uuid)]

    def latest_listed(self) -> CheckpointInfo | None:
        """Return the list entry of the newest checkpoint, or None if there is none."""
        infos = self.list_checkpoints()
        return infos[0] if infos else None

    @property
    def has_recovery_point(self) -> bool:
        """True if there is a recovery point, usable or not."""
        return self._recovery.exists()

    def recovery_point(self) -> Checkpoint | None:
        """Return the unlisted recovery point, if there is one."""
        if not self._recovery.exists():
            return None
        return self._checkpoint(self._recovery, None)

    def load(self, uuid: UUID) -> Checkpoint:
        """Return a listed checkpoint by its id.

        :raises KeyError: if there is none
        :raises StorageError: if the checkpoint or one of its files is damaged
        """
        path = self.manifest_path(uuid)
        if not path.exists():
            raise KeyError(f"There is no checkpoint {uuid}.")
        return self._checkpoint(path, uuid)

    def list_checkpoints(self) -> list[CheckpointInfo]:
        """Return all listed checkpoints with a readable manifest, newest first."""
        infos = []
        for uuid in reversed(self._ids()):
            try:
                infos.append(self._info(uuid))
            except StorageError as error:
                log.warning("a checkpoint cannot be used: %s", error)
        return infos

    def manifest_path(self, uuid: UUID) -> Path:
        """Return the path of a listed checkpoint's manifest."""
        return self._manifests / f"{uuid}.json"

    def garbage_collect(self, in_use: Iterable[str]) -> None:
        """Remove all checkpoints but the newest two, and everything that is no longer needed.

        Manifests are removed before the files that they name, so that no manifest is ever left without its files.

        :param in_use: the batch files of the running pipeline and of its journal; those of the kept checkpoints and the recovery
            point are added here
        """
        self._guard()
        ids = self._ids()
        for uuid in {*self._on_disk()} - {*ids[-KEEP:]}:
            self.manifest_path(uuid).unlink(missing_ok=True)
        if self._manifests.is_dir():
            for left in (*self._manifests.glob(f"*{TEMPORARY}"), *self.folder.glob(f"*{TEMPORARY}")):
                left.unlink(missing_ok=True)
            sync_folder(self._manifests)
        try:
            kept = [*(self.manifest_path(uuid) for uuid in ids[-KEEP:]), *([self._recovery] if self._recovery.exists() else [])]
            named = {name for path in kept for name in _files(path)}
        except StorageError as error:
            # The files that a damaged checkpoint needs are unknown until it is readable again, or old enough to be removed.
            log.warning("no batch file is removed: %s", error)
            return
        self._batches.garbage_collect({*in_use, *named})

    def _ids(self) -> list[UUID]:
        """Return the listed checkpoints, oldest first."""
        own = self._own
        return [uuid for uuid in self._on_disk() if own is None or uuid in own]

    def _on_disk(self) -> list[UUID]:
        if not self._manifests.is_dir():
            return []
        return sorted(UUID(path.stem) for path in self._manifests.glob("*.json") if _ID.fullmatch(path.stem))

    def newest(self) -> UUID | None:
        """Return the id of the newest checkpoint or recovery point, usable or not, or None if there is neither."""
        return max((*self._on_disk()[-1:], *self._recovery_uuid()), default=None)

    def _next_uuid(self) -> UUID:
        newest = self.newest()
        fresh = UUID(int=uuid7().int)
        # A clock that was set back must not make the newest checkpoint look like an old one.
        return fresh if newest is None or fresh > newest else UUID(int=newest.int + 1)

    def greatest_epoch(self) -> int:
        """Return the greatest epoch of the readable manifests, or 0 if there are none."""
        epochs = []
        for path, uuid in self.manifests():
            try:
                epochs.append(self._epoch(path, uuid))
            except StorageError as error:
                log.warning("the epoch of a checkpoint cannot be read: %s", error.what)
        return max(epochs, default=0)

    @staticmethod
    def _epoch(path: Path, uuid: UUID | None) -> int:
        return int(manifest.read(path, uuid).get("epoch", 0))

    def _guard(self) -> None:
        if self.fence is not None:
            self.fence.check()

    def _write(self, path: Path, document: dict[str, Any]) -> None:
        write_atomically(path, manifest.encode(document), self._guard)
        # A later run that has begun meanwhile has either read the manifest and resumed from it, or not, and then ignores it. So the
        # manifest stays, but is not acknowledged.
        self._guard()

    def _note(self, document: dict[str, Any]) -> None:
        listed = self.manifest_path(UUID(document["uuid"])).exists()
        processed = document["counters"]["processed_records"]
        self._write_note(NewestNote(UUID(document["uuid"]), listed, document["step"], processed))

    def _write_note(self, note: NewestNote) -> None:
        with storage_access(self._newest):
            write_atomically(self._newest, seal(asdict(note) | {"uuid": str(note.uuid)}), self._guard)

    def _recovery_uuid(self) -> tuple[UUID, ...]:
        if not self._recovery.exists():
            return ()
        try:
            with manifest.fields_of(self._recovery):
                return (UUID(manifest.read(self._recovery, None)["uuid"]),)
        except StorageError as error:
            # The next recovery point replaces it.
            log.warning("the recovery point cannot be used any more: %s", error)
            return ()

    def _document(self, uuid: UUID, contents: CheckpointContents) -> dict[str, Any]:
        size = sum(Path(self._batches.path(name)).stat().st_size for name in contents.files)
        epoch = 0 if self.fence is None else self.fence.epoch
        connectors = stored_connectors(contents.connectors)
        fields = asdict(replace(contents, connectors={})) | {"connectors": connectors} | contents.program.to_json()
        fields |= contents.counters.to_stored()
        return {"uuid": str(uuid), "created_at": time.time(), "size": size, "epoch": epoch, **fields}

    def _info(self, uuid: UUID) -> CheckpointInfo:
        path = self.manifest_path(uuid)
        with manifest.fields_of(path):
            return _info(manifest.read(path, uuid))

    def _checkpoint(self, path: Path, uuid: UUID | None) -> Checkpoint:
        """Return the checkpoint of a manifest, with all its files; ``uuid`` is None for the recovery point."""
        document = manifest.read(path, uuid)
        with manifest.fields_of(path):
            checkpoint = Checkpoint(UUID(document["uuid"]), uuid is not None, _contents(document), document.get("epoch", 0))
            self._batches.verify(checkpoint.contents.files)
        return checkpoint


def _files(path: Path) -> list[str]:
    with manifest.fields_of(path):
        return list(manifest.read(path, None)["files"])


def _contents(document: dict[str, Any]) -> CheckpointContents:
    return CheckpointContents(
        program=ProgramIdentity.from_json(document),
        step=document["step"],
        snapshot=document["snapshot"],
        files=tuple(document["files"]),
        connectors=read_connectors(document["connectors"]),
        counters=Counters.from_stored(document),
        initial_start_time=document["initial_start_time"],
        push_keys=document.get("push_keys", {}),
    )


def _info(document: dict[str, Any]) -> CheckpointInfo:
    return CheckpointInfo(
        uuid=UUID(document["uuid"]),
        fingerprint=document["program_hash"],
        size=document["size"],
        steps=document["step"],
        processed_records=document["counters"]["processed_records"],
    )
