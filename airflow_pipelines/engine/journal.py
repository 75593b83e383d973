"""The journal: one durable record per committed step since a base, which is a checkpoint, a recovery point or nothing.

The file starts with a header record and is append-only. Each record is one line: the CRC-32 of the rest, a space, JSON. A record
counts once its line is whole; a torn last line was never acknowledged to anybody and is cut off.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import asdict, dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any
from uuid import UUID

from airflow_pipelines.engine.checkpoint import Counters
from airflow_pipelines.engine.durable import remove, write_atomically
from airflow_pipelines.engine.layout import CANONICAL_FORM

FILE = "journal.log"


class DamagedJournalError(RuntimeError):
    """A record before the last one is broken: the disk lost something that had been acknowledged."""


@dataclass(frozen=True, slots=True)
class JournalHeader:
    """What the records build on: the base's id (None: an empty pipeline) and the program that made them.

    ``layouts``: of the relations whose deltas the records have, and of others. ``canonical_form``: the version of the form in which
    the values in the records are.
    """

    base: UUID | None
    program: str
    fingerprints: dict[str, Any]
    program_hash: int
    initial_start_time: float
    udf_python: str = ""
    layouts: dict[str, str] = field(default_factory=dict)
    canonical_form: int = CANONICAL_FORM
    program_version: int | None = None


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """One committed step.

    ``tables`` maps each changed table to the manifest of its normalised delta's batch, ``inline`` to the delta's Arrow stream in
    base 64 when it is too small to be worth a file. ``connectors`` holds the state (position, metrics ...) of the connectors that
    took part, as in a checkpoint. ``clock`` and ``waterlines`` are those after the step, as in a snapshot.
    """

    step: int
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    inline: dict[str, str] = field(default_factory=dict)
    connectors: dict[str, dict[str, Any]] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    clock: int | None = None
    waterlines: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JournalContents:
    """A journal as read back; ``length`` is the number of bytes up to the end of the last whole record."""

    header: JournalHeader
    records: tuple[JournalRecord, ...]
    length: int

    def files(self) -> set[str]:
        """All batch files that the records name."""
        return {name for record in self.records for batch in record.tables.values() for name in batch["files"]}


def read_journal(folder: Path) -> JournalContents | None:
    """The journal of a storage folder, or None when there is none. Raises DamagedJournalError."""
    path = folder / FILE
    if not path.exists():
        return None
    content = path.read_bytes()
    lines = content.split(b"\n")
    # What follows the last line feed is empty or torn.
    documents: list[dict[str, Any]] = []
    length = 0
    for number, line in enumerate(lines[:-1]):
        document = _decode(line)
        if document is None:
            if number == len(lines) - 2 and documents:
                break
            raise DamagedJournalError(f"Record {number} of {path} is damaged, and it is not the last one.")
        documents.append(document)
        length += len(line) + 1
    if not documents:
        raise DamagedJournalError(f"{path} has no header.")
    head, *tail = documents
    header = JournalHeader(
        base=None if head["base"] is None else UUID(head["base"]),
        program=head["program"],
        fingerprints=head["fingerprints"],
        program_hash=head["program_hash"],
        initial_start_time=head["initial_start_time"],
        udf_python=head.get("udf_python", ""),
        layouts=head.get("layouts", {}),
        # Before there was one, no form was noted.
        canonical_form=head.get("canonical_form", 0),
        program_version=head.get("program_version"),
    )
    records = tuple(_record(item) for item in tail)
    return JournalContents(header, records, length)


class Journal:
    """The journal being written. One writer: the holder of the folder's lock."""

    def __init__(self, folder: Path, header: JournalHeader, file: FileIO, contents: JournalContents | None) -> None:
        self.header = header
        self.records = 0 if contents is None else len(contents.records)
        self.size = file.tell()
        self._folder = folder
        self._file = file
        self._files = set() if contents is None else contents.files()

    @classmethod
    def create(cls, folder: Path, header: JournalHeader) -> Journal:
        """Start a journal in place of the one before it, atomically."""
        document = asdict(header)
        document["base"] = None if header.base is None else str(header.base)
        path = folder / FILE
        write_atomically(path, _encode(document))
        return cls(folder, header, path.open("ab", buffering=0), None)

    @classmethod
    def reopen(cls, folder: Path, contents: JournalContents) -> Journal:
        """Go on with a journal that was read: cut off a torn record, then append."""
        path = folder / FILE
        os.truncate(path, contents.length)
        return cls(folder, contents.header, path.open("ab", buffering=0), contents)

    @staticmethod
    def discard(folder: Path) -> None:
        """Remove a folder's journal, if it has one."""
        if (folder / FILE).exists():
            remove(folder / FILE)

    def append(self, record: JournalRecord) -> None:
        """Write one record and flush it to the disk. When this returns, the step is committed."""
        line = _encode(asdict(record))
        start = self.size
        try:
            rest = line
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError:
            # A half-written record must not be followed by a whole one.
            self._file.truncate(start)
            raise
        self.size += len(line)
        self.records += 1
        self._files.update(name for batch in record.tables.values() for name in batch["files"])

    def files(self) -> set[str]:
        """All batch files that the records name."""
        return set(self._files)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _record(document: dict[str, Any]) -> JournalRecord:
    counters = Counters(**document["counters"])
    return JournalRecord(
        document["step"],
        document["tables"],
        document["inline"],
        document["connectors"],
        counters,
        document.get("clock"),
        document.get("waterlines", {}),
    )


def _encode(document: dict[str, Any]) -> bytes:
    payload = json.dumps(document, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(payload), payload)


def _decode(line: bytes) -> dict[str, Any] | None:
    checksum, _, payload = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(payload):
        return None
    document: dict[str, Any] = json.loads(payload)
    return document
