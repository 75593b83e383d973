"""The state of a stream program goes into snapshots and comes out of them, whatever else becomes of the snapshot meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_pipelines.engine.operators.registry import operator_of
from airflow_pipelines.engine.operators.stream_states import StreamStates
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.storage.batch_store import BatchStore
from airflow_pipelines.engine.stream_nodes import GRAPH_COLUMNS, StreamGraph
from airflow_pipelines.engine.streams.runtime import Dropped, StreamRuntime, StreamStateLostError
from airflow_pipelines.engine.streams.saved_state import PAGES, PROGRESS, REST, SCHEMAS, due_of, rest_of
from airflow_pipelines.engine.streams.spark_jobs import SparkJobs
from airflow_pipelines.program.streams import STREAM_PROGRAM, StreamOperator, StreamProgram
from airflow_pipelines.rows.zsets import WEIGHT
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.streams.worker.messages import Feed, StateChanges, Stepped, StoredPages

PROGRAM = StreamProgram("counts", b"plan", (StreamOperator("a", "count", "Keyed", "f", is_keyed=True),))


@dataclass
class Process:
    """A process that was given ``opened`` and writes a file of state, and one more with each checkpoint."""

    folder: Path
    opened: list[tuple[bytes | None, list[StoredPages], int | None]] = field(default_factory=list)
    told: int = 0

    @property
    def database(self) -> Path:
        return self.folder / "database"

    def open(self, rest: bytes | None, pages: Iterable[StoredPages], dropped: Dropped, now_ms: int | None) -> Stepped:
        self.opened.append((rest, list(pages), now_ms))
        return Stepped(next_due=7)

    def step(self, now_ms: int, feeds: Sequence[Feed], jobs: SparkJobs | None) -> Stepped:
        raise ValueError("a function failed")

    def take_checkpoint(self, folder: Path) -> StateChanges:
        self.told += 1
        folder.mkdir()
        for number in range(1, 1 + self.told):
            (folder / f"{number}.sst").write_bytes(b"rows %d" % number)
        return StateChanges(b"rest %d" % self.told, True)

    def committed(self) -> None: ...

    def metrics(self) -> None: ...

    def close(self, wait_s: float) -> None: ...

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.database.iterdir()}


@dataclass
class Processes:
    """Processes of one program, with state in one store."""

    folder: Path
    started: int = 0

    def start(self) -> tuple[StreamStates, StreamRuntime, Process]:
        self.started += 1
        own = self.folder / str(self.started)
        own.mkdir()
        process = Process(own)
        runtime = StreamRuntime(lambda: process)
        operators = [operator_of(Stage(STREAM_PROGRAM, GRAPH_COLUMNS, StreamGraph(PROGRAM)))]
        return StreamStates(runtime, operators, BatchStore(self.folder / "store")), runtime, process


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


def saved(states: StreamStates, snapshot: Snapshot) -> Snapshot:
    return states.with_saved(snapshot, states.save(snapshot))


def test_a_program_goes_on_with_what_was_saved(processes: Processes) -> None:
    states, _, first = processes.start()
    states.open(Snapshot(), 5_000_000)
    assert first.opened == [(None, [], 5_000)]
    assert not first.database.exists()
    snapshot = saved(states, saved(states, Snapshot()))
    again, _, second = processes.start()
    again.open(snapshot, None)
    assert second.opened == [(b"rest 2", [], None)]
    assert second.files() == {"1.sst": b"rows 1", "2.sst": b"rows 2"}


def test_files_that_stay_are_in_the_store_once(processes: Processes) -> None:
    states, _, _ = processes.start()
    states.open(Snapshot(), 0)
    first = saved(states, Snapshot())
    second = saved(states, first)
    assert len(second.state_files[STREAM_PROGRAM].names) == 2
    assert first.state_files[STREAM_PROGRAM].names.items() < second.state_files[STREAM_PROGRAM].names.items()
    assert len(list((processes.folder / "store").glob("*.state"))) == 2


def test_pages_of_an_earlier_release_are_given_to_the_program_and_gone_with_its_next_checkpoint(processes: Processes) -> None:
    columns = {"uid": ["a"], "key_group": [1], "depth": [0], "bits": [0], "data": [b"page"]}
    columns |= {"due_event": [None], "due_processing": [None]}
    schema = SCHEMAS[PAGES]
    batch = schema.batch(pa.table({**columns, WEIGHT: [1]}), 1)
    states, _, _ = processes.start()
    states.open(Snapshot(), 0)
    earlier = states.gaining(saved(states, Snapshot()), {STREAM_PROGRAM: {PAGES: [batch]}})
    earlier = replace(earlier, state_files={})
    again, _, second = processes.start()
    again.open(earlier, None)
    assert second.opened == [(b"rest 1", [StoredPages("a", {(1, 0, 0): (b"page", None, None)})], None)]
    later = saved(again, earlier)
    assert not later.states[STREAM_PROGRAM][PAGES].batches
    third, _, process = processes.start()
    third.open(later, None)
    assert process.opened == [(b"rest 1", [], None)]


def test_when_the_program_wants_to_be_called_is_in_the_snapshot_once(processes: Processes) -> None:
    states, _, _ = processes.start()
    states.open(Snapshot(), 0)
    snapshot = states.gaining(Snapshot(), states.timers(Snapshot()))
    assert due_of(snapshot.states[STREAM_PROGRAM][PROGRESS]) == 7_000
    assert not states.timers(snapshot)[STREAM_PROGRAM], "nothing has changed"


def test_what_a_snapshot_has_gained_meanwhile_stays(processes: Processes) -> None:
    states, _, _ = processes.start()
    states.open(Snapshot(), 0)
    checkpoint = states.save(Snapshot())
    newer = states.gaining(Snapshot(), states.timers(Snapshot()))
    both = states.with_saved(newer, checkpoint)
    assert due_of(both.states[STREAM_PROGRAM][PROGRESS]) == 7_000
    assert (rest_of(both.states[STREAM_PROGRAM][REST]), len(both.state_files[STREAM_PROGRAM].names)) == (b"rest 1", 1)


def test_a_step_that_failed_leaves_nothing_to_save(processes: Processes) -> None:
    states, runtime, process = processes.start()
    states.open(Snapshot(), 0)
    with pytest.raises(ValueError, match="a function failed"):
        runtime.step(0, [])
    with pytest.raises(StreamStateLostError, match="cannot be saved after a step that failed"):
        states.save(Snapshot())
    assert process.told == 0


def test_a_circuit_without_a_stream_program_stays_as_it_is(tmp_path: Path) -> None:
    states = StreamStates(None, (), BatchStore(tmp_path))
    states.open(Snapshot(), 0)
    snapshot = Snapshot()
    assert saved(states, snapshot) is snapshot


def test_a_stream_program_needs_its_process(tmp_path: Path) -> None:
    operators = [operator_of(Stage(STREAM_PROGRAM, GRAPH_COLUMNS, StreamGraph(PROGRAM)))]
    with pytest.raises(RuntimeError, match="without a process"):
        StreamStates(None, operators, BatchStore(tmp_path)).open(Snapshot(), 0)
