"""The check of a storage folder, which changes nothing: its good and damaged parts, and what a start would do with them."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from airflow_pipelines.engine.storage import manifest
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.checkpoint import CheckpointStore
from airflow_pipelines.engine.storage.errors import MissingError, StorageError, storage_error
from airflow_pipelines.engine.storage.journal import FILE, read_journal
from airflow_pipelines.engine.storage.set_aside import FOLDER as SET_ASIDE
from airflow_pipelines.engine.storage.starting import SavedStarts, StartingPoint


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding about one part of a storage.

    :param error: the error; None for a good part
    """

    part: str
    summary: str
    error: StorageError | None = None


@dataclass(frozen=True, slots=True)
class StorageReport:
    """The findings about a storage folder.

    ``start`` describes what the next start would resume from, or ``refusal`` is the error that it would raise.
    """

    folder: Path
    findings: tuple[Finding, ...]
    start: str | None
    refusal: StorageError | None

    @property
    def is_good(self) -> bool:
        """True if nothing is damaged or missing."""
        return self.refusal is None and all(finding.error is None for finding in self.findings)


def check_storage(folder: Path, expected: UUID | None = None) -> StorageReport:
    """Read everything in a storage folder and compare it with its checksums.

    :param folder: the storage folder of one pipeline
    :param expected: a checkpoint that is known to have been written
    :returns: the report
    :raises StorageError: when the folder cannot be read
    """
    if (folder / "batches").exists() and not (folder / "batches").is_dir():
        return StorageReport(
            folder, (), None, storage_error(folder, NotADirectoryError(errno.ENOTDIR, "", str(folder / "batches")))
        )
    if not (folder / "batches").is_dir():
        return _report_without_batches(folder, expected)
    batches = BatchStore(folder / "batches")
    checkpoints = CheckpointStore(folder, batches)
    starts = SavedStarts(folder, checkpoints)
    named: dict[str, list[str]] = {}
    leftover = _find_left_over(starts)
    findings = [_report_unused(uuid) for uuid in sorted(leftover)]
    findings += [_manifest(path, uuid, named) for path, uuid in checkpoints.manifests() if uuid not in leftover]
    findings += _check_newest(checkpoints)
    findings.append(_journal(folder, named))
    findings += _batches(batches, named)
    findings += _set_aside(folder)
    try:
        start = _describe_start(starts.newest(expected))
    except StorageError as error:
        return StorageReport(folder, tuple(findings), None, error)
    return StorageReport(folder, tuple(findings), start, None)


def _report_without_batches(folder: Path, expected: UUID | None) -> StorageReport:
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if expected is None and not set(names) - {"lock"}:
        return StorageReport(folder, (), "from scratch: there is nothing in the storage", None)
    return StorageReport(folder, (), None, MissingError(folder / "batches", f"The folder {folder / 'batches'} is missing."))


def _find_left_over(starts: SavedStarts) -> set[UUID]:
    try:
        return starts.left_over()
    except StorageError:
        # The journal or a manifest is damaged, which is a finding of its own.
        return set()


def _report_unused(uuid: UUID) -> Finding:
    what = "left over from a run that a later one overtook, and acknowledged to nobody: not used, goes with the next checkpoint"
    return Finding(f"checkpoint {uuid}", what)


def _manifest(path: Path, uuid: UUID | None, named: dict[str, list[str]]) -> Finding:
    part = "recovery point" if uuid is None else f"checkpoint {uuid}"

    def read() -> str:
        document = manifest.read(path, uuid)
        with manifest.fields_of(path):
            for name in document["files"]:
                named.setdefault(name, []).append(part)
            records = document["counters"]["processed_records"]
            return f"step {document['step']}, {records} processed records, {len(document['files'])} batch files"

    return _check_part(part, read)


def _check_newest(checkpoints: CheckpointStore) -> list[Finding]:
    """Return a finding for the newest checkpoint if it is missing.

    A start names only the first problem, which may be another one.
    """
    try:
        checkpoints.latest()
    except StorageError as error:
        # An existing checkpoint has a finding of its own, and so have its batches.
        missing = isinstance(error, MissingError) and error.path.suffix == ".json"
        return [Finding("newest checkpoint", error.what, error)] if missing else []
    return []


def _journal(folder: Path, named: dict[str, list[str]]) -> Finding:
    def read() -> str:
        journal = read_journal(folder)
        if journal is None:
            return "there is none"
        for name in journal.files():
            named.setdefault(name, []).append("journal")
        base = "an empty pipeline" if journal.header.base is None else str(journal.header.base)
        return f"{len(journal.records)} steps on top of {base}"

    return _check_part("journal", read)


def _batches(batches: BatchStore, named: dict[str, list[str]]) -> list[Finding]:
    """Return one finding for each bad batch file, and one for all others."""

    def check(name: str) -> Finding | None:
        part = f"batch {name.removesuffix('.parquet')}"  # files of state keep the end of their name
        result = _check_part(part, lambda: str(batches.open(name)))
        users = ", ".join(named.get(name, ["nothing that could be read"]))
        return None if result.error is None else Finding(part, f"{result.summary} Needed by {users}.", result.error)

    known = batches.files() | named.keys()
    with ThreadPoolExecutor() as threads:
        bad = [finding for finding in threads.map(check, sorted(known)) if finding is not None]
    unneeded = len(known - named.keys())
    return [
        *bad,
        Finding("batches", f"{len(known) - len(bad)} files agree with their names; {unneeded} are needed by nothing here"),
    ]


def _set_aside(folder: Path) -> Iterable[Finding]:
    for path in sorted((folder / SET_ASIDE).iterdir()) if (folder / SET_ASIDE).is_dir() else ():
        names = ", ".join(sorted(file.name for file in path.iterdir()))
        yield Finding(f"set aside {path.name}", f"{names}: not used any more, may be deleted")


def _check_part(part: str, read: Callable[[], str]) -> Finding:
    try:
        return Finding(part, read())
    except StorageError as error:
        return Finding(part, error.what, error)


def _describe_start(start: StartingPoint) -> str:
    if start.base is None and start.journal is None:
        return "from scratch: nothing was committed"
    base = "the journal alone"
    if start.base is not None:
        base = f"{'checkpoint' if start.base.listed else 'recovery point'} {start.base.uuid}, step {start.base.contents.step}"
    replayed = "" if start.journal is None else f", and replays {len(start.journal.records)} steps of {FILE}"
    return f"from {base}{replayed}"
