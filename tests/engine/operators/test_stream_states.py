"""The state of a stream program goes into snapshots and comes out of them, whatever else becomes of the snapshot meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from airflow_pipelines.engine.operators.registry import operator_of
from airflow_pipelines.engine.operators.stream_states import StreamStates
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.stream_nodes import GRAPH_COLUMNS, StreamGraph
from airflow_pipelines.engine.streams.runtime import Dropped, StreamRuntime, StreamStateLostError
from airflow_pipelines.engine.streams.saved_state import PAGES, PROGRESS, due_of
from airflow_pipelines.engine.streams.spark_jobs import SparkJobs
from airflow_pipelines.program.streams import STREAM_PROGRAM, StreamOperator, StreamProgram
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.streams.worker.client import TakePages
from airflow_pipelines.streams.worker.messages import Feed, StateChanges, Stepped, StoredPages

PROGRAM = StreamProgram("counts", b"plan", (StreamOperator("a", "count", "Keyed", "f", is_keyed=True),))


@dataclass
class Process:
    """A process that was given ``opened`` and tells of a page with each call."""

    opened: list[tuple[bytes | None, list[StoredPages], int | None]] = field(default_factory=list)
    told: int = 0

    def open(self, rest: bytes | None, pages: Iterable[StoredPages], dropped: Dropped, now_ms: int | None) -> Stepped:
        self.opened.append((rest, list(pages), now_ms))
        return Stepped(next_due=7)

    def step(self, now_ms: int, feeds: Sequence[Feed], jobs: SparkJobs | None) -> Stepped:
        raise ValueError("a function failed")

    def changes(self, take: TakePages) -> StateChanges:
        self.told += 1
        take(StoredPages("a", {(self.told, 0, 0): (b"page", None, None)}))
        return StateChanges((), [], b"rest %d" % self.told)

    def committed(self) -> None: ...

    def metrics(self) -> None: ...

    def close(self, wait_s: float) -> None: ...


def states_of(process: Process) -> tuple[StreamStates, StreamRuntime]:
    runtime = StreamRuntime(lambda: process)
    operators = [operator_of(Stage(STREAM_PROGRAM, GRAPH_COLUMNS, StreamGraph(PROGRAM)))]
    return StreamStates(runtime, operators, lambda batch: batch), runtime


def saved(states: StreamStates, snapshot: Snapshot) -> Snapshot:
    return states.gaining(snapshot, states.changes(snapshot))


def test_a_program_goes_on_with_what_was_saved() -> None:
    states, _ = states_of(first := Process())
    states.open(Snapshot(), 5_000_000)
    assert first.opened == [(None, [], 5_000)]
    snapshot = saved(states, saved(states, Snapshot()))
    again, _ = states_of(second := Process())
    again.open(snapshot, None)
    ((rest, pages, now),) = second.opened
    assert (rest, now) == (b"rest 2", None)
    assert sorted(key for each in pages for key in each.pages) == [(1, 0, 0), (2, 0, 0)]


def test_when_the_program_wants_to_be_called_is_in_the_snapshot_once() -> None:
    states, _ = states_of(Process())
    states.open(Snapshot(), 0)
    snapshot = states.gaining(Snapshot(), states.timers(Snapshot()))
    assert due_of(snapshot.states[STREAM_PROGRAM][PROGRESS]) == 7_000
    assert not states.timers(snapshot)[STREAM_PROGRAM], "nothing has changed"


def test_what_a_snapshot_has_gained_meanwhile_stays() -> None:
    states, _ = states_of(Process())
    states.open(Snapshot(), 0)
    gained = states.changes(Snapshot())
    newer = saved(states, Snapshot())
    both = states.gaining(newer, gained).states[STREAM_PROGRAM]
    assert len(both[PAGES].batches) == 2


def test_a_step_that_failed_leaves_nothing_to_save() -> None:
    states, runtime = states_of(process := Process())
    states.open(Snapshot(), 0)
    with pytest.raises(ValueError, match="a function failed"):
        runtime.step(0, [])
    with pytest.raises(StreamStateLostError, match="cannot be saved after a step that failed"):
        states.changes(Snapshot())
    assert process.told == 0


def test_a_circuit_without_a_stream_program_stays_as_it_is() -> None:
    states = StreamStates(None, (), lambda batch: batch)
    states.open(Snapshot(), 0)
    snapshot = Snapshot()
    assert states.gaining(snapshot, states.changes(snapshot)) is snapshot


def test_a_stream_program_needs_its_process() -> None:
    operators = [operator_of(Stage(STREAM_PROGRAM, GRAPH_COLUMNS, StreamGraph(PROGRAM)))]
    with pytest.raises(RuntimeError, match="without a process"):
        StreamStates(None, operators, lambda batch: batch).open(Snapshot(), 0)
