"""The point from which a pipeline resumes: the newest base with its journal, or an older checkpoint that a user has chosen."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from airflow_pipelines.engine.storage.checkpoint import Checkpoint, CheckpointStore
from airflow_pipelines.engine.storage.errors import DamagedError, MissingError, OlderCheckpoint, StorageError, StorageProblem
from airflow_pipelines.engine.storage.journal import FILE, JournalContents, read_journal
from airflow_pipelines.engine.storage.journal_end import read_journal_end
from airflow_pipelines.engine.storage.set_aside import set_aside

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """The saved state to start from: a base (None: an empty pipeline), and the journal that continues it, if there is one."""

    base: Checkpoint | None = None
    journal: JournalContents | None = None


class SavedStarts:
    """The possible starts from a storage folder."""

    def __init__(self, folder: Path, checkpoints: CheckpointStore) -> None:
        self._folder = folder
        self._checkpoints = checkpoints

    def newest(self, expected: UUID | None = None) -> StartingPoint:
        """Return the start that resumes after the last committed step.

        :param expected: a checkpoint that is known to have been written
        :returns: the newest base and its journal
        :raises StorageError: if a part of it is damaged or missing; the error offers the good checkpoints
        """
        try:
            journal = read_journal(self._folder)
            leftover = self._left_over(journal)
            if leftover:
                log.warning("not used, since overtaken runs left them and nobody was told of them: checkpoints %s", leftover)
                self._checkpoints.disown(leftover)
            base = self._checkpoints.latest()
            self._check_expected(base, expected)
            return StartingPoint(base, self._find_continuation(base, journal))
        except StorageError as error:
            if error.problem in (StorageProblem.DAMAGED, StorageProblem.MISSING):
                raise error.offering(self.older()) from error
            raise

    def left_over(self) -> set[UUID]:
        """Return the checkpoints of an overtaken run that the journal of a later run does not build on.

        :returns: the checkpoints, which no start uses
        :raises StorageError: if this cannot be determined
        """
        return self._left_over(read_journal(self._folder))

    def on(self, base: Checkpoint | None) -> StartingPoint:
        """Return the start from a base that the configuration names, even if there is something newer.

        :param base: the base
        :returns: the base, with the journal if that continues it
        :raises StorageError: when the journal is damaged
        """
        journal = read_journal(self._folder)
        fits = journal is not None and journal.header.base == (None if base is None else base.uuid)
        return StartingPoint(base, journal if fits else None)

    def choose(self, uuid: UUID) -> tuple[StartingPoint, Path | None]:
        """Return the start from an older checkpoint. Everything newer is set aside, including the journal.

        :param uuid: the checkpoint
        :returns: the start, and the folder with what was set aside, if anything was
        :raises StorageError: if the checkpoint is missing or damaged; nothing was set aside then, and the error offers the good
            ones
        """
        try:
            base = self._checkpoints.load(uuid)
        except KeyError:
            path = self._checkpoints.manifest_path(uuid)
            raise MissingError(path, f"There is no checkpoint {uuid}: {path} is missing.").offering(self.older()) from None
        except StorageError as error:
            raise error.offering(self.older()) from error
        aside = set_aside(self._folder, self._checkpoints.newer_than(uuid))
        self._checkpoints.note(base)
        return StartingPoint(base), aside

    def load_pulled(self, uuid: UUID) -> StartingPoint:
        """Return the start from a checkpoint that was pulled from elsewhere. Data of another history in the folder is set aside.

        :param uuid: the checkpoint, which is newer than all others
        :returns: the start, with the journal if that continues the checkpoint
        :raises StorageError: if the checkpoint or the journal is damaged
        """
        journal = read_journal(self._folder)
        if journal is not None and journal.header.base == uuid:
            return self.newest()
        return self.choose(uuid)[0]

    def older(self) -> list[OlderCheckpoint]:
        """Return the checkpoints to which the pipeline can go back, newest first, with the loss that this means."""
        reached = self._find_reached()
        good = []
        for _, uuid in self._checkpoints.manifests():
            if uuid is None:
                continue
            try:
                contents = self._checkpoints.load(uuid).contents
            except StorageError:
                continue
            step, records = contents.step, contents.counters.processed_records
            lost = (None, None) if reached is None else (reached[0] - step, reached[1] - records)
            good.append(OlderCheckpoint(uuid, step, records, *lost))
        return good

    def _check_expected(self, base: Checkpoint | None, expected: UUID | None) -> None:
        if expected is not None and (base is None or base.uuid < expected):
            path = self._checkpoints.manifest_path(expected)
            raise MissingError(path, f"The checkpoint manifest {path} is missing, which the pipeline had written.")

    def _left_over(self, journal: JournalContents | None) -> set[UUID]:
        return set() if journal is None else self._checkpoints.left_over(journal.header.epoch, journal.header.base)

    def _find_continuation(self, base: Checkpoint | None, journal: JournalContents | None) -> JournalContents | None:
        """Return the journal that continues a base, or None.

        A journal with an older base was replaced by this base. A journal whose base is newer, or missing, is an error: its base was
        lost.
        """
        path = self._folder / FILE
        base_uuid = None if base is None else base.uuid
        end = read_journal_end(self._folder)
        if end is not None and end.base == base_uuid and (journal is None or journal.checksums[0] != end.journal):
            raise MissingError(
                path, f"The journal {path} is missing: {end.records} of its records were acknowledged, up to step {end.step}."
            )
        needed = [None if journal is None else journal.header.base, None if end is None else end.base]
        lost = max((uuid for uuid in needed if uuid is not None and (base_uuid is None or uuid > base_uuid)), default=None)
        if lost is not None:
            raise MissingError(
                self._checkpoints.manifest_path(lost),
                f"The journal {path} goes on from checkpoint or recovery point {lost}, which is missing in {self._folder}.",
            )
        if journal is not None and base is not None and journal.header.base != base_uuid and journal.header.epoch > base.epoch:
            path = self._checkpoints.manifest_path(base.uuid)
            raise DamagedError(
                path, f"The checkpoint {path} is of a run that a later one had replaced, and is not part of what followed."
            )
        # A journal without records may have been begun by another release.
        return journal if journal is not None and journal.records and journal.header.base == base_uuid else None

    def _find_reached(self) -> tuple[int, int] | None:
        """Return the last step and the processed records that are known to have been acknowledged, however little is left."""
        known = []
        noted = self._checkpoints.read_note()
        if noted is not None:
            known.append((noted.step, noted.processed_records))
        end = read_journal_end(self._folder)
        if end is not None:
            known.append((end.step, end.processed_records))
        return max(known, default=None)
