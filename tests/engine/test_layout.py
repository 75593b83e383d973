"""What was saved under other rules is evaluated anew, and what was saved under the same ones is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_pipelines.engine.circuit import Circuit
from airflow_pipelines.engine.outdated import Outdated, find_outdated
from airflow_pipelines.engine.snapshot import Holdings, Snapshot
from airflow_pipelines.engine.spark.sessions import SparkSessions
from airflow_pipelines.rows.changes import Op
from tests.engine.another_release import another_release
from tests.engine.programs import Running, emitted

pytestmark = pytest.mark.core

PROGRAM = """
create table t (k int, v int);
create materialized view sums as select k, sum(v) as s from t group by k;
create view doubled as select k, s * 2 as s from sums;
create materialized view largest as select max(s) as s from doubled;
create materialized view counts as select v, count(*) as n from t group by v;
create view joined as select a.k, b.n from t a left join counts b on a.v = b.v;
"""
ROWS = ((1, 5), (1, 6), (2, 7))


def saved(running: Running) -> dict[str, Any]:
    return json.loads(json.dumps(running.circuit.snapshot.flush(running.store).to_manifest()))


def reopened(running: Running, manifest: dict[str, Any], later: Running) -> Circuit:
    """A circuit of ``later`` with what ``running`` saved."""
    later.circuit = Circuit(later.program, later.sessions, running.store)
    later.store = running.store
    later.circuit.restore(Snapshot.from_manifest(manifest, running.store))
    return later.circuit


def relations(running: Running) -> frozenset[str]:
    return frozenset(running.program.schemas)


@pytest.fixture(scope="module")
def now(sessions: SparkSessions) -> Running:
    return Running(PROGRAM, sessions)


@pytest.fixture(scope="module")
def before(sessions: SparkSessions) -> Running:
    with another_release():
        # Programs are compiled once, and the comment makes another text of it.
        running = Running(f"{PROGRAM}-- as another release plans it", sessions)
    running.insert("t", *ROWS)
    return running


def test_a_state_of_another_layout_is_not_used(before: Running, now: Running) -> None:
    manifest = saved(before)
    assert before.program.fingerprints == now.program.fingerprints, "the program is the same"
    found = find_outdated(now.program, now.circuit.wiring, Holdings.of_manifest(manifest), relations(now))
    # What is computed from other contents may be other contents.
    assert found == Outdated({name: f"{name} was saved in another layout" for name in ("sums", "doubled", "largest")})
    circuit = reopened(before, manifest, now)
    assert circuit.refresh() == {"sums", "doubled", "largest"}
    assert circuit.snapshot.step == 1, "nobody sees it"
    assert now.rows("sums") == [(1, 11), (2, 7)]
    step = now.step(now.changes("t", (2, 100)), now.changes("t", (1, 6), op=Op.DELETE))
    assert {*emitted(step, "sums")} == {(1, 5, 1), (1, 11, -1), (2, 107, 1), (2, 7, -1)}
    assert {*emitted(step, "largest")} == {(22, -1), (214, 1)}
    assert {*emitted(step, "joined")} == {(1, 1, -1), (2, 1, 1)}


def test_what_is_the_same_is_restored_as_it_is(now: Running) -> None:
    running = now
    running.circuit = Circuit(running.program, running.sessions, running.store)
    running.insert("t", *ROWS)
    manifest = saved(running)
    holdings = Holdings.of_manifest(manifest)
    assert find_outdated(running.program, running.circuit.wiring, holdings, relations(running)) == Outdated()
    circuit = reopened(running, manifest, running)
    assert circuit.refresh() == frozenset()
    assert {name: trace.rows for (name, _), trace in circuit.snapshot.all_states().items()} == {
        "sums": 2,
        "largest": 1,
        "counts": 3,
    }


def test_a_manifest_without_layouts_keeps_its_tables(before: Running, now: Running) -> None:
    manifest = saved(before)
    del manifest["layouts"]
    found = find_outdated(now.program, now.circuit.wiring, Holdings.of_manifest(manifest), relations(now))
    assert found.tables == ()
    assert found.views == dict.fromkeys(("sums", "doubled", "largest", "counts"), "it was saved without a layout")
    circuit = reopened(before, manifest, now)
    circuit.refresh()
    assert now.rows("t") == sorted(ROWS)
    assert now.rows("sums") == [(1, 11), (2, 7)]
    assert emitted(now.insert("t", (2, 1)), "counts") == [(1, 1, 1)]


UNREACHABLE = """
create table events (k int, v int) with ('append_only' = 'true');
create table late (ts timestamp lateness interval 1 hour, v int);
create view totals as select k, sum(v) as v from events group by k;
create view timed as select ts, count(*) as n from late group by ts;
lateness timed.ts interval 2 hours;
create materialized view untouched as select v, count(*) as n from late group by v;
"""


def test_what_cannot_be_evaluated_anew_is_named(sessions: SparkSessions) -> None:
    running = Running(UNREACHABLE, sessions)
    running.insert("events", (1, 2))
    manifest = saved(running)
    holdings = Holdings.of_manifest(manifest)
    assert find_outdated(running.program, running.circuit.wiring, holdings, relations(running)) == Outdated()
    manifest["layouts"] |= {"totals": "other", "timed$all": "other"}
    manifest["traces"]["late"]["schema"]["fields"][1]["type"] = "long"
    del manifest["layouts"]["late"]
    holdings = Holdings.of_manifest(manifest)
    found = find_outdated(running.program, running.circuit.wiring, holdings, relations(running))
    assert found.lost == (("totals", "events"),)
    assert "timed" in found.timed
    assert found.tables == ("late",)
    unaffected = frozenset({"untouched", "events"})
    assert find_outdated(running.program, running.circuit.wiring, holdings, unaffected) == Outdated()
    with pytest.raises(ValueError, match="late with other columns"):
        running.circuit.restore(Snapshot.from_manifest(manifest, running.store))
    running.circuit.close()


@pytest.mark.rest
def test_a_snapshot_of_a_release_with_one_nameless_state_per_stage_is_restored(now: Running) -> None:
    running = now
    running.circuit = Circuit(running.program, running.sessions, running.store)
    running.insert("t", *ROWS)
    manifest = saved(running)
    for state in manifest["states"].values():
        # The rules of the merges were in the names of the columns, and the names of the states nowhere.
        assert set(state) == {"schema", "sums", "merges", "batches"}
        del state["merges"]
    circuit = reopened(running, manifest, running)
    assert circuit.refresh() == frozenset()
    assert {name: set(states) for name, states in circuit.snapshot.states.items()} == {
        "sums": {"groups"},
        "largest": {"groups"},
        "counts": {"groups"},
    }
    assert emitted(running.insert("t", (2, 1)), "sums") == [(2, 7, -1), (2, 8, 1)]
