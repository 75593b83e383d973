"""The journal: one durable record per committed step since a base, which is a checkpoint, a recovery point or nothing.

The file starts with a header record and is append-only. Each record is one line: a checksum, a space, JSON. The checksum covers
that of the line before, so that no line can be changed, swapped with another or removed. A record counts once its line is complete.
A last line without its end is a write that was cut off: it was never acknowledged and does not count. Any other line that does not
match its checksum is damage. Journals of earlier releases have the CRC-32 of each line's JSON instead.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from airflow_pipelines.engine.storage.checkpoint import Counters
from airflow_pipelines.engine.storage.connector_state import ConnectorState, read_connectors, stored_connectors
from airflow_pipelines.engine.storage.durable import remove, write_atomically
from airflow_pipelines.engine.storage.errors import DamagedError, storage_access
from airflow_pipelines.engine.storage.journal_end import JournalEnd, JournalEndFile, read_journal_end
from airflow_pipelines.engine.storage.manifest import CANONICAL_FORM
from airflow_pipelines.engine.storage.sealed_json import digest
from airflow_pipelines.program.identity import ProgramIdentity

FILE = "journal.log"
_UNCHAINED = re.compile(rb"[0-9a-f]{8} ")


class DamagedJournalError(DamagedError):
    """The error of a journal whose acknowledged records cannot be read.

    :param path: the journal
    :param why: the kind of damage
    """

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, f"The journal {path} is damaged: {why}. It has steps that were acknowledged.")


@dataclass(frozen=True, slots=True)
class JournalHeader:
    """The basis of the records: the base's id (None: an empty pipeline) and the program that wrote them.

    :param layouts: the layouts of the relations whose deltas the records have, and of others
    :param canonical_form: the version of the canonical form of the values in the records
    :param epoch: the epoch of the run that writes it
    """

    base: UUID | None
    program: ProgramIdentity
    initial_start_time: float
    layouts: dict[str, str] = field(default_factory=dict)
    canonical_form: int = CANONICAL_FORM
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """One committed step.

    ``tables`` maps each changed table to the manifest of its normalised delta's batch, ``inline`` to the delta's Arrow stream in
    base 64 when it is too small to be worth a file. ``connectors`` holds the state of the connectors that
    took part, as in a checkpoint. ``clock`` and ``waterlines`` are those after the step, as in a snapshot. ``push_keys`` are those
    of the pushes that the step took, as in a checkpoint.
    """

    step: int
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    inline: dict[str, str] = field(default_factory=dict)
    connectors: dict[str, ConnectorState] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    clock: int | None = None
    waterlines: dict[str, dict[str, str]] = field(default_factory=dict)
    push_keys: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JournalContents:
    """A journal as read back, with its complete records. It is closed: a run that continues from it begins another one.

    :param checksums: the checksums of the header and of each record
    """

    header: JournalHeader
    records: tuple[JournalRecord, ...]
    checksums: tuple[str, ...]

    def files(self) -> set[str]:
        """Return all batch files that the records name."""
        return {name for record in self.records for batch in record.tables.values() for name in batch["files"]}


def read_journal(folder: Path) -> JournalContents | None:
    """Return the journal of a storage folder, or None if there is none.

    :raises StorageError: when it cannot be read, or is damaged
    """
    path = folder / FILE
    with storage_access(path):
        if not path.exists():
            return None
        content = path.read_bytes()
    # What follows the last line feed is empty or torn.
    lines = content.split(b"\n")[:-1]
    if not lines:
        raise DamagedJournalError(path, "it has no header")
    decode = _decode_unchained if _UNCHAINED.match(lines[0]) else _decode
    checksums: list[str] = []
    documents: list[dict[str, Any]] = []
    for number, line in enumerate(lines):
        decoded = decode(line, checksums[-1] if checksums else "")
        if decoded is None:
            what = f"record {number} of {len(lines) - 1}" if number else "its header"
            raise DamagedJournalError(path, f"{what} does not agree with its checksum")
        document, checksum = decoded
        documents.append(document)
        checksums.append(checksum)
    with _fields_of(path):
        header, records = _header(documents[0]), tuple(_record(document) for document in documents[1:])
    contents = JournalContents(header, records, tuple(checksums))
    _check_end(path, contents, read_journal_end(folder))
    return contents


def _check_end(path: Path, contents: JournalContents, end: JournalEnd | None) -> None:
    """Raise an error if a journal has fewer records than had been acknowledged."""
    if end is None or end.journal != contents.checksums[0] or end.last in contents.checksums:
        return
    raise DamagedJournalError(path, f"{end.records} of its records were acknowledged, and it ends after {len(contents.records)}")


class Journal:
    """The journal being written. It has one writer, the holder of the folder's lock."""

    def __init__(self, path: Path, header: JournalHeader, checksum: str) -> None:
        self.header = header
        self.records = 0
        self._path = path
        self._name = self._checksum = checksum
        self._end = JournalEndFile(path.parent)
        self._file = path.open("ab", buffering=0)
        self.size = self._file.tell()
        self._files: set[str] = set()

    @classmethod
    def create(cls, folder: Path, header: JournalHeader) -> Journal:
        """Start a journal that replaces the previous one, atomically."""
        document = asdict(header) | header.program.to_json()
        document["base"] = None if header.base is None else str(header.base)
        path = folder / FILE
        line, checksum = _encode(document, "")
        with storage_access(path):
            write_atomically(path, line)
            return cls(path, header, checksum)

    @staticmethod
    def discard(folder: Path) -> None:
        """Remove a folder's journal, if it has one."""
        if (folder / FILE).exists():
            remove(folder / FILE)

    def append(self, record: JournalRecord) -> None:
        """Write one record and sync it to disk. When this returns, the step is committed."""
        line, checksum = _encode(_to_stored(record), self._checksum)
        with storage_access(self._path):
            try:
                rest = line
                while rest:
                    rest = rest[self._file.write(rest) :]
                os.fsync(self._file.fileno())
            except OSError:
                # A half-written record must not be followed by a whole one.
                self._file.truncate(self.size)
                raise
        self._checksum = checksum
        self.size += len(line)
        self.records += 1
        processed = record.counters.processed_records
        self._end.write(JournalEnd(self.header.base, self._name, self.records, checksum, record.step, processed))
        self._files.update(name for batch in record.tables.values() for name in batch["files"])

    def files(self) -> set[str]:
        """Return all batch files that the records name."""
        return set(self._files)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._end.close()


@contextmanager
def _fields_of(path: Path) -> Iterator[None]:
    """Convert errors of a journal's fields, which may be any in an unknown release, to :class:`DamagedJournalError`."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedJournalError(path, f"a field cannot be read ({type(error).__name__}: {error})") from error


def _header(document: dict[str, Any]) -> JournalHeader:
    return JournalHeader(
        base=None if document["base"] is None else UUID(document["base"]),
        program=ProgramIdentity.from_json(document),
        initial_start_time=document["initial_start_time"],
        layouts=document.get("layouts", {}),
        # Releases before the canonical form recorded none.
        canonical_form=document.get("canonical_form", 0),
        epoch=document.get("epoch", 0),
    )


def _record(document: dict[str, Any]) -> JournalRecord:
    return JournalRecord(
        document["step"],
        document["tables"],
        document["inline"],
        read_connectors(document["connectors"]),
        Counters.from_stored(document),
        document.get("clock"),
        document.get("waterlines", {}),
        document.get("push_keys", {}),
    )


def _to_stored(record: JournalRecord) -> dict[str, Any]:
    fields = asdict(replace(record, connectors={})) | {"connectors": stored_connectors(record.connectors)}
    return fields | record.counters.to_stored()


def _encode(document: dict[str, Any], before: str) -> tuple[bytes, str]:
    """Return a line and its checksum. ``before`` is the checksum of the line before."""
    payload = json.dumps(document, separators=(",", ":")).encode()
    checksum = digest(before.encode() + payload)
    return b"%s %s\n" % (checksum.encode(), payload), checksum


def _decode(line: bytes, before: str) -> tuple[dict[str, Any], str] | None:
    checksum, _, payload = line.partition(b" ")
    actual = digest(before.encode() + payload)
    return (json.loads(payload), actual) if checksum == actual.encode() else None


def _decode_unchained(line: bytes, _: str) -> tuple[dict[str, Any], str] | None:
    checksum, _space, payload = line.partition(b" ")
    actual = f"{zlib.crc32(payload):08x}"
    return (json.loads(payload), actual) if checksum == actual.encode() else None
