"""A kill anywhere in a checkpoint of a stream program leaves the state by key of the checkpoint before, or of this one."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from airflow_pipelines.engine.operators.registry import operator_of
from airflow_pipelines.engine.operators.stream_states import StreamStates
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.storage.checkpoint import CheckpointContents, CheckpointStore, Counters
from airflow_pipelines.engine.stream_nodes import GRAPH_COLUMNS, StreamGraph
from airflow_pipelines.engine.streams.runtime import Dropped, StreamRuntime
from airflow_pipelines.engine.streams.spark_jobs import SparkJobs
from airflow_pipelines.program.fingerprints import Fingerprints
from airflow_pipelines.program.identity import ProgramIdentity
from airflow_pipelines.program.sources import ProgramSource
from airflow_pipelines.program.streams import STREAM_PROGRAM, StreamOperator, StreamProgram
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.streams.state.database import DatabaseRows, StateDatabase
from airflow_pipelines.streams.state.rows import NEVER, pack_row
from airflow_pipelines.streams.worker.messages import Feed, StateChanges, Stepped, StoredPages
from tests.engine.crash import at_every_change

PROGRAM = StreamProgram("counts", b"plan", (StreamOperator("a", "count", "Keyed", "f", is_keyed=True),))
IDENTITY = ProgramIdentity(ProgramSource("CREATE TABLE t (x int)"), Fingerprints(tables={"t": "f"}), 1)


class Process:
    """A process with a database, in which it counts how often it was asked for its state."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "running"
        self._opened = StateDatabase(self.database)
        self.rows = DatabaseRows(self._opened, 0, range(8))

    def open(self, rest: bytes | None, pages: Iterable[StoredPages], dropped: Dropped, now_ms: int | None) -> Stepped:
        return Stepped()

    def step(self, now_ms: int, feeds: Sequence[Feed], jobs: SparkJobs | None) -> Stepped:
        raise NotImplementedError

    def take_checkpoint(self, folder: Path) -> StateChanges:
        taken = self.taken() + 1
        self.rows.write({(group, b"taken"): pack_row((NEVER,) * 3, b"%d" % taken) for group in range(8)})
        self._opened.checkpoint(folder)
        return StateChanges(b"rest %d" % taken, True)

    def taken(self) -> int:
        """Return how often it was asked. All rows must say the same."""
        said = {row[-1:] for _, row in self.rows.scan()}
        assert len(said) < 2
        return int(said.pop()) if said else 0

    def committed(self) -> None: ...

    def metrics(self) -> None: ...

    def close(self, wait_s: float) -> None:
        self._opened.close()


class Run:
    """A run of a pipeline, as far as the state of its stream program is concerned."""

    def __init__(self, folder: Path) -> None:
        self.store = BatchStore(folder / "batches")
        self.checkpoints = CheckpointStore(folder, self.store)
        self.process = Process(folder)
        shutil.rmtree(self.process.database, ignore_errors=True)
        operators = [operator_of(Stage(STREAM_PROGRAM, GRAPH_COLUMNS, StreamGraph(PROGRAM)))]
        self._states = StreamStates(StreamRuntime(lambda: self.process), operators, self.store)
        latest = self.checkpoints.latest()
        self._snapshot = Snapshot(layouts={STREAM_PROGRAM: "1"})
        if latest is not None:
            self._snapshot = Snapshot.from_manifest(latest.contents.snapshot, self.store)
        self._states.open(self._snapshot, 0)

    def take_checkpoint(self) -> None:
        """Take a checkpoint, and remove what no checkpoint needs any more."""
        self._snapshot = self._states.with_saved(self._snapshot, self._states.save(self._snapshot)).flush(self.store)
        files = tuple(sorted(self._snapshot.files()))
        self.checkpoints.save(CheckpointContents(IDENTITY, 1, self._snapshot.to_manifest(), files, {}, Counters(), 0.0))
        self.checkpoints.garbage_collect(())


def take_two(folder: Path) -> None:
    """Go on, and take two checkpoints; the first one of all is removed with the second of these."""
    run = Run(folder)
    run.take_checkpoint()
    run.take_checkpoint()
    run.process.close(0)


@pytest.mark.processes
def test_a_kill_anywhere_in_a_checkpoint_leaves_one_whole_state(tmp_path: Path) -> None:
    numbers = itertools.count()
    begun = tmp_path / "begun"
    first = Run(begun)
    first.take_checkpoint()
    first.process.close(0)
    seen = set()

    def prepare() -> Path:
        folder = tmp_path / str(next(numbers))
        shutil.copytree(begun, folder)
        return folder

    def check(folder: Path, survived: bool) -> None:
        run = Run(folder)
        taken = run.process.taken()
        assert taken == 3 if survived else taken in {1, 2, 3}
        seen.add(taken)
        run.take_checkpoint()
        assert run.process.taken() == taken + 1
        run.process.close(0)
        named = {name for each in run.checkpoints.list_checkpoints() for name in run.checkpoints.load(each.uuid).contents.files}
        assert {path.name for path in (folder / "batches").iterdir() if path.is_file()} == named
        shutil.rmtree(folder)

    assert at_every_change(prepare, take_two, check) > 50
    assert seen == {1, 2, 3}
