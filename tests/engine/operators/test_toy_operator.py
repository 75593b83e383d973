"""An operator that the engine does not know: a Python function over a stream, with state per key and a timer.

Its node, its operator and its registration are all here, and nothing else of the project was changed for it: this is how kinds of
stages are added (``docs/engine-operators.md`` follows this file).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import Mock

import pyarrow as pa
import pytest

from airflow_pipelines.compiler.compile_program import compile_program
from airflow_pipelines.engine.batch import Batch, weighted
from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.errors import StepError
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.execution.outcome import Outcome, stage_schema, struct_of
from airflow_pipelines.engine.operators.matching_rows import matching_rows
from airflow_pipelines.engine.operators.operator import Operator
from airflow_pipelines.engine.operators.registry import register
from airflow_pipelines.engine.outdated import Outdated, find_outdated
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.snapshot import Holdings, Snapshot
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.engine.state import Kept, StateSchema
from airflow_pipelines.engine.storage.checkpoint import Counters
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.host.changes.bootstrap import BootstrapPlan
from airflow_pipelines.host.checkpoints.durability import Durability
from airflow_pipelines.host.connectors.endpoints import Endpoints
from airflow_pipelines.host.outputs.output_endpoints import OutputEndpoints
from airflow_pipelines.host.steps.live import LivePipeline
from airflow_pipelines.host.steps.recovery import Recovery
from airflow_pipelines.program.diff import PipelineDiff
from airflow_pipelines.rows.zsets import SEQUENCE, VERSION, WEIGHT, Merge
from airflow_pipelines.sql.plan.ir.stage import Stage, ViewPlan
from tests.engine.programs import Running, emitted
from tests.host import saved

pytestmark = pytest.mark.core

PROGRAM = """
create table events (door string, what string, n int) with ('append_only' = 'true', 'materialized' = 'true');
create materialized view moves as select door, what as before, what as after, n as least from events;
create materialized view counts as select after, count(*) as n from moves group by after;
"""
SECOND = 1_000_000
PATIENCE = 10 * SECOND
"""A door that stays open for so long is closed."""


def transition(before: str | None, what: str) -> str:
    """The user's function: what a door does when something happens to it."""
    if what == "break":
        raise ZeroDivisionError("the door is broken")
    if before == "locked" and what != "unlock":
        return "locked"
    return {"open": "open", "close": "closed", "lock": "locked" if before == "closed" else str(before), "unlock": "closed"}[what]


@dataclass(frozen=True, slots=True)
class StateMachine:
    """Rows (key, state before, state after, least number so far) for each event of ``source`` and for each door that is closed."""

    source: str
    columns: tuple[str, ...] = ("door", "what", "n")

    strategy: ClassVar[str] = "state machine"
    starts_with_rows: ClassVar[bool] = False
    keeps_contents: ClassVar[bool] = False
    append_only: ClassVar[bool] = True

    @property
    def reads(self) -> frozenset[str]:
        return frozenset({self.source})

    @property
    def rereads(self) -> frozenset[str]:
        return frozenset()

    def renamed(self, _: Sequence[str], /) -> StateMachine:
        return self


@dataclass(slots=True)
class Machine:
    """What is known of one key during a step."""

    state: str | None = None
    due: int | None = None
    least: int | None = None


def due_times(machines: Trace) -> dict[str, int]:
    """When each door that is open is closed; a toy looks through all that it has."""
    rows = [row for batch in machines.batches for row in batch.to_arrow().to_pylist()]
    newest = {row["door"]: row["due"] for row in sorted(rows, key=lambda row: row[VERSION])}
    return {door: due for door, due in newest.items() if due is not None}


class RunStateMachine(Operator[StateMachine]):
    """Calls the function for each event in the order of arrival, and for no event twice."""

    depends_on_order = True
    may_be_evaluated_again = False
    has_timers = True
    calls: ClassVar[list[str]] = []

    def state_schemas(self) -> Mapping[str, StateSchema]:
        machines = struct_of((("door", "string"), ("state", "string"), ("due", "bigint")))
        least = struct_of((("door", "string"), ("n", "int")))
        return {
            "machines": StateSchema(machines, {"state": Merge.NEWEST, "due": Merge.NEWEST}),
            "least": StateSchema(least, {"n": Merge.MIN}),
        }

    def timer(self, states: Mapping[str, Trace]) -> int | None:
        return min(due_times(states["machines"]).values(), default=None) if states else None

    def evaluate(self, context: Context, kept: Kept) -> Outcome:
        states = self.empty_states() if kept.states is None else kept.states
        events = self._events(context)
        clock = -1 if context.clock is None else context.clock
        expired = {door for door, due in due_times(states["machines"]).items() if due <= clock}
        doors = sorted({event["door"] for event in events} | expired)
        machines = self._machines(doors, states, context)
        known = {door for door, machine in machines.items() if machine.state is not None}
        moves = list(self._moves(events, expired, machines, context.clock))
        return Outcome(self._delta(moves), self._gained(machines, known, context.version), consolidated=False)

    def _events(self, context: Context) -> list[dict[str, Any]]:
        batches = context.relations[self.node.source].delta
        rows = [row for batch in batches for row in batch.to_arrow().to_pylist()]
        # What arrived before anything depended on the order has no number.
        return sorted(rows, key=lambda row: (row[SEQUENCE] is not None, row[SEQUENCE]))

    def _machines(self, doors: list[str], states: Mapping[str, Trace], context: Context) -> dict[str, Machine]:
        wanted = pa.table({"door": pa.array(doors, pa.string())})
        machines = {door: Machine() for door in doors}
        for row in matching_rows(states["machines"], wanted, ["door"], context).to_pylist():
            machines[row["door"]] = Machine(row["state"], row["due"])
        for row in matching_rows(states["least"], wanted, ["door"], context).to_pylist():
            machines[row["door"]].least = row["n"]
        return machines

    def _moves(
        self, events: list[dict[str, Any]], expired: set[str], machines: dict[str, Machine], clock: int | None
    ) -> Iterator[tuple[str, str | None, str, int | None]]:
        for door in sorted(expired):
            machine = machines[door]
            yield door, machine.state, "closed", machine.least
            machine.state, machine.due = "closed", None
        for event in events:
            machine = machines[event["door"]]
            self.calls.append(event["what"])
            after = transition(machine.state, event["what"])
            machine.least = event["n"] if machine.least is None else min(machine.least, event["n"])
            yield event["door"], machine.state, after, machine.least
            machine.due = clock + PATIENCE if after == "open" and clock is not None else None
            machine.state = after

    def _delta(self, moves: list[tuple[str, str | None, str, int | None]]) -> Batch:
        schema = weighted(stage_schema(self.stage))
        names = [column.name for column in schema.fields]
        columns = zip(*((*move, 1) for move in moves), strict=True) if moves else [[]] * len(names)
        kinds = (pa.string(), pa.string(), pa.string(), pa.int32(), pa.int64())
        return Batch.in_memory(schema, pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names=names))

    def _gained(self, machines: Mapping[str, Machine], known: set[str], version: int) -> dict[str, Batch]:
        weights = pa.array([0 if door in known else 1 for door in machines], pa.int64())
        doors = pa.array(list(machines), pa.string())
        state = pa.array([machine.state for machine in machines.values()], pa.string())
        due = pa.array([machine.due for machine in machines.values()], pa.int64())
        least = pa.array([machine.least for machine in machines.values()], pa.int32())
        return {
            "machines": self.states["machines"].batch(
                pa.table({"door": doors, "state": state, "due": due, WEIGHT: weights}), version
            ),
            "least": self.states["least"].batch(pa.table({"door": doors, "n": least, WEIGHT: weights}), version),
        }


register(StateMachine, RunStateMachine)


@pytest.fixture(scope="module")
def program(sessions: SparkSessions) -> Program:
    """The program with the toy in place of a view's query."""
    compiled = compile_program(PROGRAM, sessions)
    plan = compiled.plans["moves"]
    stage = Stage("moves", plan.columns, StateMachine("events"))
    toy = ViewPlan("moves", plan.query, plan.columns, (stage,), stage)
    return replace(compiled, plans={**compiled.plans, "moves": toy})


@pytest.fixture
def toy(program: Program, sessions: SparkSessions) -> Iterator[Running]:
    running = Running("", sessions, compiled=program)
    yield running
    running.circuit.close()


def at(running: Running, clock: int, *events: tuple[str, str, int]) -> list[tuple[Any, ...]]:
    """A step at an instant; gives what the toy emits."""
    changes = [running.changes("events", event) for event in events]
    step = running.circuit.step(changes, clock)
    running.circuit.publish(step)
    return emitted(step, "moves")


def reopened(running: Running) -> None:
    """Go on from a checkpoint in a circuit that knows nothing else."""
    manifest = running.circuit.snapshot.flush(running.store).to_manifest()
    running.circuit.close()
    running.circuit = Circuit(running.program, running.sessions, running.store)
    holdings = Holdings.of_manifest(manifest)
    assert find_outdated(running.program, running.circuit.wiring, holdings, frozenset(running.program.schemas)) == Outdated()
    running.circuit.restore(Snapshot.from_manifest(manifest, running.store))
    assert running.circuit.refresh() == frozenset()


def test_the_order_of_arrival_decides(toy: Running) -> None:
    assert at(toy, SECOND, ("a", "open", 5), ("a", "close", 3), ("a", "lock", 4), ("a", "open", 9)) == [
        ("a", "closed", "locked", 3, 1),
        ("a", "locked", "locked", 3, 1),
        ("a", "open", "closed", 3, 1),
        ("a", None, "open", 5, 1),
    ]
    assert at(toy, 2 * SECOND, ("b", "lock", 1), ("b", "close", 1), ("b", "open", 1))[-1] == ("b", None, "None", 1, 1)
    assert toy.rows("counts") == [("None", 1), ("closed", 2), ("locked", 2), ("open", 2)]
    assert toy.rows("events")[0] == ("a", "close", 3), "users do not see the sequence"
    step = toy.circuit.step([toy.changes("events", ("c", "open", 1))])
    assert SEQUENCE in step.table_deltas["events"].schema.names
    assert SEQUENCE not in step.deltas["events"].to_arrow().column_names


def test_a_timer_wakes_the_circuit_without_input(toy: Running) -> None:
    assert toy.circuit.next_timer() is None
    at(toy, SECOND, ("a", "open", 1), ("b", "open", 2))
    at(toy, 4 * SECOND, ("b", "open", 7))
    assert toy.circuit.next_timer() == 11 * SECOND
    early = toy.circuit.step([], 10 * SECOND)
    assert early.quiet, "nothing is due yet"
    assert at(toy, 11 * SECOND) == [("a", "open", "closed", 1, 1)]
    assert toy.circuit.next_timer() == 14 * SECOND, "the newest due time of a door counts"
    assert at(toy, 20 * SECOND) == [("b", "open", "closed", 2, 1)]
    assert toy.circuit.next_timer() is None


def test_a_checkpoint_has_all_states_by_name(toy: Running) -> None:
    at(toy, SECOND, ("a", "open", 5), ("a", "close", 3), ("b", "open", 1))
    for number in range(12):
        at(toy, 2 * SECOND, ("c", "open" if number % 2 else "close", 100 - number))
    toy.circuit.maintain()
    states = toy.circuit.snapshot.states["moves"]
    assert {name: len(state.batches) for name, state in states.items()} == {"machines": 1, "least": 1}, "they were merged"
    reopened(toy)
    assert set(toy.circuit.snapshot.states["moves"]) == {"machines", "least"}
    assert toy.circuit.next_timer() == 11 * SECOND
    assert at(toy, 3 * SECOND, ("a", "lock", 9), ("c", "open", 200)) == [
        ("a", "closed", "locked", 3, 1),
        ("c", "open", "open", 89, 1),
    ]


def test_a_bootstrap_sees_the_stored_rows_in_their_order(toy: Running) -> None:
    steps = [[("a", "open", 5), ("b", "open", 5)], [("a", "close", 3)], [("b", "close", 9), ("a", "lock", 4), ("b", "lock", 1)]]
    emitted_once = sorted((row for events in steps for row in at(toy, SECOND, *events)), key=repr)
    reopened(toy)
    step = toy.circuit.bootstrap({"moves", "counts"}, SECOND)
    toy.circuit.publish(step)
    assert emitted(step, "moves") == emitted_once
    assert at(toy, 2 * SECOND, ("a", "open", 1)) == [("a", "locked", "locked", 1, 1)]


def test_a_table_that_was_stored_without_its_order_is_used_all_the_same(toy: Running, sessions: SparkSessions) -> None:
    plain = Running(PROGRAM, sessions)
    plain.insert("events", ("a", "open", 5))
    plain.store = toy.store
    manifest = plain.circuit.snapshot.flush(toy.store).to_manifest()
    toy.circuit.restore(Snapshot.from_manifest(manifest, toy.store))
    assert toy.rows("events") == [("a", "open", 5)]
    step = toy.circuit.bootstrap({"moves", "counts"})
    toy.circuit.publish(step)
    assert emitted(step, "moves") == [("a", None, "open", 5, 1)]
    assert at(toy, SECOND, ("a", "close", 7)) == [("a", "open", "closed", 5, 1)]
    back = Circuit(plain.program, sessions, toy.store)
    back.restore(toy.circuit.snapshot)
    assert back.relation("events").count() == 2
    for circuit in (plain.circuit, back):
        circuit.close()


def test_the_function_is_not_called_again_to_find_a_failing_row(toy: Running) -> None:
    RunStateMachine.calls.clear()
    with pytest.raises(StepError, match="broken") as raised:
        at(toy, SECOND, ("a", "open", 1), ("b", "break", 1), ("c", "open", 1))
    assert raised.value.failing_row is None
    assert RunStateMachine.calls == ["open", "break"]


def test_what_has_no_order_cannot_be_read(program: Program, sessions: SparkSessions) -> None:
    stage = replace(program.plans["moves"].full, node=StateMachine("counts"))
    plans = {**program.plans, "moves": replace(program.plans["moves"], stages=(stage,), full=stage)}
    with pytest.raises(ValueError, match="depends on the order of rows"):
        Running("", sessions, compiled=replace(program, plans=plans))


def endpoints_into(given: list[tuple[int, list[tuple[Any, ...]]]]) -> Mock:
    """Stand for the outputs of a pipeline that has none, and add what they would have got."""

    def deliver(step: int, deltas: Mapping[str, Batch]) -> None:
        rows = deltas["moves"].to_arrow().to_pylist() if "moves" in deltas else []
        given.append((step, sorted((tuple(row.values()) for row in rows), key=repr)))

    endpoints = Mock(spec=Endpoints, outputs=Mock(spec=OutputEndpoints, declared=[], first_kept=None))
    endpoints.outputs.deliver_again.side_effect = lambda step, _epoch, deltas, _program, _outputs: deliver(step, deltas)
    return endpoints


def live(running: Running, durability: Durability, endpoints: Endpoints) -> LivePipeline:
    """A pipeline around the circuit that can only restore."""
    parts = {name: Mock() for name in ("metrics", "log", "clock")}
    return LivePipeline(running.program, saved.PROGRAM, running.sessions, running.circuit, endpoints, durability, **parts)


def test_a_replay_of_the_journal_after_a_kill_gives_the_same(toy: Running, tmp_path: Path) -> None:
    durability = Durability(tmp_path, saved.OPTIONS)
    given = []
    steps: list[tuple[int, list[tuple[str, str, int]]]] = [
        (SECOND, [("a", "open", 5), ("b", "open", 1)]),
        (2 * SECOND, [("a", "close", 4)]),
        (3 * SECOND, [("a", "lock", 6), ("a", "open", 6)]),
        (11 * SECOND, []),
    ]
    for clock, events in steps:
        step = toy.circuit.step([toy.changes("events", event) for event in events], clock)
        durability.commit(step.number, step.table_deltas, {}, Counters(), saved.PROGRAM, 0.0, step.snapshot)
        toy.circuit.publish(step)
        given.append((step.number, emitted(step, "moves")))
    assert given[-1] == (4, [("b", "open", "closed", 1, 1)]), "the timer"
    contents = toy.rows("moves")
    durability.close()

    toy.circuit.close()
    toy.circuit = Circuit(toy.program, toy.sessions, toy.store)
    assert not toy.circuit.steps_add_up
    delivered: list[tuple[int, list[tuple[Any, ...]]]] = []
    again = Durability(tmp_path, saved.OPTIONS)
    state = again.saved_state()
    assert state is not None
    Recovery(live(toy, again, endpoints_into(delivered))).restore(
        state, BootstrapPlan(PipelineDiff(), frozenset(toy.program.schemas), frozenset(), frozenset())
    )
    again.close()
    assert delivered == given
    assert toy.rows("moves") == contents
    assert toy.circuit.next_timer() is None
