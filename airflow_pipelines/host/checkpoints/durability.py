"""The durable state of a pipeline: its lock, batch store, checkpoints and journal, used in the one right order."""

from __future__ import annotations

import base64
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql.types import StructType

from airflow_pipelines.contract.statuses import CrashGuarantee
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.snapshot import Holdings, Snapshot
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.checkpoint import (
    Checkpoint,
    CheckpointContents,
    CheckpointInfo,
    CheckpointStore,
    Counters,
)
from airflow_pipelines.engine.storage.checkpoint_sources import LATEST, CheckpointSources
from airflow_pipelines.engine.storage.connector_state import ConnectorState
from airflow_pipelines.engine.storage.fence import Fence
from airflow_pipelines.engine.storage.journal import (
    Journal,
    JournalContents,
    JournalHeader,
    JournalRecord,
    read_journal,
)
from airflow_pipelines.engine.storage.journal_end import read_journal_end
from airflow_pipelines.engine.storage.lock import StorageLock
from airflow_pipelines.engine.storage.manifest import CANONICAL_FORM
from airflow_pipelines.engine.storage.set_aside import files_set_aside
from airflow_pipelines.engine.storage.starting import SavedStarts, StartingPoint
from airflow_pipelines.host.state.options import RuntimeOptions
from airflow_pipelines.program.identity import ProgramIdentity

INLINE_BYTES = 64 << 10
"""The greatest size of a table delta that goes into the journal itself: one flush instead of three."""
JOURNAL_RECORDS = 500
JOURNAL_BYTES = 32 << 20
"""The size of a journal above which a recovery point replaces it, so that neither it nor a replay grows without bound."""


@dataclass(frozen=True, slots=True)
class SavedState:
    """The state that an earlier incarnation left: a base (None: an empty pipeline) and the committed steps after it."""

    base: Checkpoint | None
    records: tuple[JournalRecord, ...]
    program: ProgramIdentity
    initial_start_time: float
    layouts: Mapping[str, str] = field(default_factory=dict)
    """The layouts of the records' deltas."""
    canonical_form: int = CANONICAL_FORM
    """The canonical form of the values in the records."""
    epoch: int = 0
    """The epoch of the run that committed the records."""
    reached_in: int = 0
    """The epoch of the run whose newest step is the last committed one."""

    @property
    def holdings(self) -> Holdings:
        """The contents and states of the base, without the rows."""
        return Holdings() if self.base is None else Holdings.of_manifest(self.base.contents.snapshot)

    @property
    def base_step(self) -> int:
        """The step of the base."""
        return 0 if self.base is None else self.base.contents.step

    @property
    def step(self) -> int:
        """The last committed step."""
        if self.records:
            return self.records[-1].step
        return self.base_step

    @property
    def counters(self) -> Counters:
        """The counters after the last committed step."""
        if self.records:
            return self.records[-1].counters
        return Counters() if self.base is None else self.base.contents.counters

    @property
    def connectors(self) -> dict[str, ConnectorState]:
        """The state of every connector after the last committed step."""
        states = {} if self.base is None else dict(self.base.contents.connectors)
        for record in self.records:
            states.update(record.connectors)
        return states

    @property
    def push_keys(self) -> dict[str, int]:
        """The keys of the pushes whose rows are in the state, oldest first."""
        keys = {} if self.base is None else dict(self.base.contents.push_keys)
        for record in self.records:
            keys.update(record.push_keys)
        return keys


class Durability:
    """The durable state of one incarnation. Only the runner's thread calls the methods that write."""

    def __init__(self, folder: Path, options: RuntimeOptions) -> None:
        """Take the folder's lock.

        :raises StorageLockedError: if another run has it
        :raises StorageError: if it cannot be written
        """
        self.options = options
        self._temporary = None if options.storage else Path(tempfile.mkdtemp(prefix="airflow-pipelines-"))
        self.folder = folder if self._temporary is None else self._temporary
        self._lock = StorageLock(self.folder)
        self.batches = BatchStore(self.folder / "batches", options.verification)
        self.checkpoints = CheckpointStore(self.folder, self.batches)
        self._journal: Journal | None = None
        self._replayed: JournalContents | None = None
        self._base: UUID | None = None
        self._has_checkpoint = False
        self.journals_always = False
        """True if the journal is kept for other reasons than the fault tolerance model.

        It is set for a stream program, whose state is lost after a failed step, and for outputs whose target must equal a view:
        a step that the target has must not be computed in another way after a crash.
        """
        fence = Fence.take(self.folder, self.checkpoints.greatest_epoch)
        self.checkpoints.begin(fence)
        self.batches.guard, self.fence = fence.check, fence
        self._starts = SavedStarts(self.folder, self.checkpoints)
        self._set_aside: set[str] = set()

    def saved_state(self, expected: UUID | None = None, sources: CheckpointSources | None = None) -> SavedState | None:
        """Return the state to start from: the newest local state, else the one that ``sync`` names, else None for a fresh start.

        :param expected: a checkpoint that is known to have been made
        :param sources: the sources that a checkpoint is pulled from if ``sync`` says so
        :raises StorageError: if the local state cannot be used
        :raises SyncError: if the state in a store of copies cannot be used
        """
        return self._load_saved(self._start(expected, sources)) if self.options.storage else None

    def go_back(self, uuid: UUID) -> tuple[SavedState | None, Path | None]:
        """Return an older checkpoint to start from, and the folder with the newer state, if there was any.

        :raises StorageError: if there is no such checkpoint, or it is damaged
        """
        start, aside = self._starts.choose(uuid)
        return self._load_saved(start), aside

    def load_pulled(self, uuid: UUID) -> SavedState | None:
        """Return a checkpoint to start from that was pulled into the store and is the newest there.

        :raises StorageError: if it is damaged
        """
        return self._load_saved(self._starts.load_pulled(uuid))

    def _load_saved(self, start: StartingPoint) -> SavedState | None:
        base, journal = start.base, start.journal
        self._has_checkpoint = self.checkpoints.latest_listed() is not None
        self._set_aside = files_set_aside(self.folder)
        self._base = None if base is None else base.uuid
        # The next commit begins a journal of its own, so the records of the old one must first be saved in a base.
        self._replayed = journal if journal is not None and journal.records else None
        records = () if journal is None else journal.records
        layouts = {} if journal is None else journal.header.layouts
        form = CANONICAL_FORM if journal is None else journal.header.canonical_form
        epoch = 0 if journal is None else journal.header.epoch
        if base is not None:
            contents = base.contents
            reached_in = epoch if records else base.epoch
            return SavedState(base, records, contents.program, contents.initial_start_time, layouts, form, epoch, reached_in)
        if journal is None or not records:
            return None
        header = journal.header
        return SavedState(None, records, header.program, header.initial_start_time, layouts, form, epoch, epoch)

    def check(self) -> None:
        """Make sure that this is the newest run over the storage.

        :raises StorageError: if it is not, or if this cannot be determined
        """
        self.fence.check()

    @property
    def journals(self) -> bool:
        """True if committed steps go to the journal.

        They do until the first checkpoint exists, and always for exactly-once and if :attr:`journals_always` is set.
        """
        if not self.options.storage:
            return False
        always = self.journals_always or self.options.fault_tolerance is CrashGuarantee.EXACTLY_ONCE
        return always or not self._has_checkpoint

    def commit(
        self,
        step: int,
        deltas: Mapping[str, Batch],
        connectors: Mapping[str, ConnectorState],
        counters: Counters,
        program: ProgramIdentity,
        initial_start_time: float,
        snapshot: Snapshot,
        push_keys: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Make a step durable if the journal is kept. Once this returns, no kill can lose the step.

        :param step: the step's number
        :param deltas: the deltas of the tables
        :param connectors: the states of the connectors that took part
        :param counters: the counters after the step
        :param program: the program that runs
        :param initial_start_time: the start of the first incarnation, in seconds since the epoch
        :param snapshot: the snapshot after the step, whose clock and waterlines a replay repeats
        :param push_keys: the keys of the pushes in the step
        :raises OvertakenError: if a later run of the pipeline uses the storage
        :raises StorageError: if the storage cannot be written
        """
        self.fence.check()
        if not self.journals:
            return
        if self._replayed is not None:
            raise RuntimeError("the steps of the journal that was replayed must be saved before another one is committed")
        if self._journal is None:
            header = JournalHeader(
                self._base,
                program,
                initial_start_time,
                dict(snapshot.layouts),
                snapshot.canonical_form,
                self.fence.epoch,
            )
            self._journal = Journal.create(self.folder, header)
        tables: dict[str, dict[str, Any]] = {}
        inline: dict[str, str] = {}
        held = []
        for name, delta in deltas.items():
            if delta.rows == 0:
                continue
            if delta.table is not None and not delta.files and delta.table.nbytes <= INLINE_BYTES:
                inline[name] = base64.b64encode(_to_stream(delta.table)).decode()
            else:
                flushed = delta.flush(self.batches)
                held.append(flushed)
                tables[name] = flushed.to_manifest()
        waterlines = {name: dict(columns) for name, columns in snapshot.waterlines.items()}
        clock, keys = snapshot.clock, dict(push_keys)
        self._journal.append(JournalRecord(step, tables, inline, dict(connectors), counters, clock, waterlines, keys))
        # A later run that has begun meanwhile may not have read the record. The step must not be acknowledged then.
        self.fence.check()

    @property
    def needs_recovery_point(self) -> bool:
        """True if the journal has grown so long that a recovery point should replace it."""
        journal = self._journal
        return journal is not None and (journal.records >= JOURNAL_RECORDS or journal.size >= JOURNAL_BYTES)

    def deltas_of(self, record: JournalRecord, schemas: Mapping[str, StructType]) -> dict[str, Batch]:
        """Return the table deltas of a journal record.

        :param record: the record of a step
        :param schemas: the schemas of the deltas, by table
        """
        deltas = {}
        for name, manifest in record.tables.items():
            deltas[name] = Batch.from_manifest(manifest, schemas[name], self.batches)
        for name, stream in record.inline.items():
            table = pa.ipc.open_stream(base64.b64decode(stream)).read_all()
            deltas[name] = Batch.in_memory(schemas[name], table)
        return deltas

    def save_checkpoint(self, contents: CheckpointContents) -> CheckpointInfo:
        """Write a listed checkpoint, and discard the journal that it replaces."""
        info = self.checkpoints.save(contents)
        self._has_checkpoint = True
        self._rebase(info.uuid)
        return info

    def save_recovery_point(self, contents: CheckpointContents) -> None:
        """Write the unlisted recovery point in place of the journal. It needs storage; :attr:`journals` may be False."""
        self._rebase(self.checkpoints.save_recovery_point(contents))

    def list_checkpoints(self) -> list[dict[str, Any]]:
        """Return the listed checkpoints in wire form, newest first."""
        return [info.to_wire() for info in self.checkpoints.list_checkpoints()]

    def collect_garbage(self) -> None:
        """Remove checkpoints beyond the newest two, and batch files that nothing refers to."""
        journals = (journal for journal in (self._journal, self._replayed) if journal is not None)
        journaled = {name for journal in journals for name in journal.files()}
        self.checkpoints.garbage_collect(journaled | self._set_aside)

    def drop_old_copies(self) -> None:
        """Remove pulled checkpoints beyond the newest two, before any was opened.

        A folder with a history of its own stays as it is.
        """
        if read_journal(self.folder) is None and not self.checkpoints.has_recovery_point:
            self.checkpoints.garbage_collect(files_set_aside(self.folder))

    def close(self) -> None:
        """Close the journal and release the folder's lock. Remove a temporary folder."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        self._lock.release()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _start(self, expected: UUID | None, sources: CheckpointSources | None) -> StartingPoint:
        sync = self.options.sync
        if sources is None or sync is None or sync.start_from_checkpoint is None:
            return self._starts.newest(expected)
        if sync.start_from_checkpoint != LATEST:
            return self._starts.on(self._resolve(sources))
        here = (self.checkpoints.read_note(), read_journal_end(self.folder), self.checkpoints.latest_listed())
        start = self._starts.newest(expected if any(here) else None)
        return StartingPoint(self._resolve(sources)) if start.base is None and start.journal is None else start

    def _resolve(self, sources: CheckpointSources) -> Checkpoint | None:
        uuid = sources.resolve()
        return None if uuid is None else self.checkpoints.load(uuid)

    def _rebase(self, base: UUID) -> None:
        self._base = base
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        self._replayed = None
        self.fence.check()
        # The next commit starts a new journal on this base; the old one names another base and is not read any more.
        Journal.discard(self.folder)


def _to_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
