"""A push that is sent again with its key adds its rows once, for as long as the pipeline has those rows."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

import pytest

from airflow_pipelines.host.inputs import push_keys
from airflow_pipelines.host.inputs.intake import Intake, Push
from airflow_pipelines.host.inputs.push_keys import PushKeys, kept_key
from tests.host.driver import Make, Pipeline

PROGRAM = """
CREATE TABLE log (x INT);
CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v INT);
CREATE MATERIALIZED VIEW logged AS SELECT x, COUNT(*) AS n FROM log GROUP BY x;
CREATE MATERIALIZED VIEW kept AS SELECT id, v FROM t;
"""
EXACTLY_ONCE = {"model": "exactly_once", "checkpoint_interval_secs": None}
AT_LEAST_ONCE = {"model": "at_least_once", "checkpoint_interval_secs": None}


def pushed(
    pipeline: Pipeline, key: str | None, *rows: dict[str, Any], table: str = "log", force: bool = False, awaited: bool = True
) -> dict[str, Any]:
    """Push rows with a key, and wait until they are processed unless somebody else does; the answer."""
    assert pipeline.deployment_id is not None
    path, body = f"/deployments/{pipeline.deployment_id}/ingress/{table}", json.dumps(rows)
    params: dict[str, Any] = {"format": "json", "array": True, "update_format": "raw", "force": force}
    answer = pipeline.http.post(path, params=params, content=body, headers={} if key is None else {"Idempotency-Key": key})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    if awaited:
        pipeline.await_token(found["token"])
    return found


def logged(pipeline: Pipeline) -> list[tuple[int, int]]:
    return [(row["x"], row["n"]) for row in pipeline.query("SELECT x, n FROM logged ORDER BY x")]


def push(key: str) -> Push:
    return Push(None, [], 1, 1, key)


def test_a_key_is_taken_once() -> None:
    keys = PushKeys()
    first, second, third = push("t a"), push("t a"), push("t a")
    keys.claim("t a", first)
    keys.claim("t a", second)
    assert (first.repeats, second.repeats) == (False, True)
    assert not second.accepted.done(), "the rows are not there yet"
    first.accepted.set_result(None)
    assert second.accepted.done()
    keys.commit({"t a": int(time.time())})
    keys.claim("t a", third)
    assert third.repeats
    assert third.accepted.done()
    other = push("u a")
    keys.claim("u a", other)
    assert not other.repeats, "a key belongs to its table"


def test_a_push_whose_sender_has_gone_is_none() -> None:
    keys = PushKeys()
    first, second = push("t a"), push("t a")
    keys.claim("t a", first)
    assert first.accepted.cancel()
    keys.claim("t a", second)
    assert not second.repeats


def test_keys_of_the_last_days_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now, keys = int(time.time()), PushKeys()
    keys.restore({"t old": now - push_keys.KEPT_S - 1, "t a": now - 20, "t b": now - 10, "my t c": now}, emptied=["my t"])
    assert list(keys.collect_kept()) == ["t a", "t b"]
    monkeypatch.setattr(push_keys, "MAX_KEPT", 1)
    assert list(keys.collect_kept()) == ["t b"]
    assert kept_key("my t", "c").rpartition(" ")[0] == "my t"
    assert len(kept_key("t", "long" * 100)) < 40


def is_known(keys: PushKeys, key: str) -> bool:
    """Return True if a push with the key would repeat another one."""
    again = push(key)
    keys.claim(key, again)
    return again.repeats


def test_the_oldest_keys_are_forgotten_where_nothing_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push_keys, "MAX_KEPT", 2)
    now, keys = int(time.time()), PushKeys()
    for number, key in enumerate(("t a", "t b", "t a", "t c")):
        keys.commit({key: now + number})
    assert [is_known(keys, key) for key in ("t a", "t b", "t c")] == [True, False, True], "a came again after b"


def test_a_key_that_is_too_old_may_come_again() -> None:
    now, keys = int(time.time()), PushKeys()
    keys.commit({"t old": now - push_keys.KEPT_S - 1, "t new": now})
    assert [is_known(keys, key) for key in ("t old", "t new")] == [False, True]


def test_a_key_becomes_too_old_while_nothing_is_pushed(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = PushKeys()
    keys.commit({"t a": int(time.time())})
    monkeypatch.setattr(push_keys, "KEPT_S", -2)
    assert not is_known(keys, "t a")


def test_the_rows_of_a_push_are_not_kept_until_its_transaction_commits() -> None:
    keys, first = PushKeys(), push("t a")
    references = sys.getrefcount(first)
    keys.claim("t a", first)
    assert sys.getrefcount(first) == references


def test_keys_are_unsaved_until_a_checkpoint_has_them() -> None:
    keys = PushKeys()
    assert not keys.has_unsaved
    keys.commit({})
    assert not keys.has_unsaved
    keys.commit({"t a": int(time.time())})
    keys.collect_kept()
    assert keys.has_unsaved, "the checkpoint may not have been written"
    keys.note_saved()
    assert not keys.has_unsaved


@pytest.mark.core("exactly_once")
@pytest.mark.parametrize("model", [EXACTLY_ONCE, AT_LEAST_ONCE], ids=lambda model: model["model"])
def test_keys_outlive_restarts_exactly_as_their_rows_do(make: Make, model: dict[str, Any]) -> None:
    pipeline = make(PROGRAM, fault_tolerance=model)
    pipeline.start()
    assert pushed(pipeline, "a", {"x": 1})["already_there"] is False
    assert pushed(pipeline, "a", {"x": 1})["already_there"] is True
    assert "already_there" not in pushed(pipeline, None, {"x": 1}), "without a key rows are added each time"
    assert pushed(pipeline, "b", {"x": 1})["already_there"] is False
    assert logged(pipeline) == [(1, 3)]
    # A graceful stop.
    pipeline.suspend()
    pipeline.start()
    assert pushed(pipeline, "a", {"x": 1})["already_there"] is True
    pushed(pipeline, "c", {"x": 2})
    # A kill: the rows are there exactly if the journal has them, and the key says the same.
    pipeline.kill()
    pipeline.start()
    has_rows = logged(pipeline) == [(1, 3), (2, 1)]
    assert has_rows == (model is EXACTLY_ONCE)
    assert pushed(pipeline, "c", {"x": 2})["already_there"] is has_rows
    assert logged(pipeline) == [(1, 3), (2, 1)]
    pipeline.checkpoint()
    pipeline.kill()
    pipeline.start()
    for key in ("a", "b", "c"):
        assert pushed(pipeline, key, {"x": 2})["already_there"] is True
    assert logged(pipeline) == [(1, 3), (2, 1)]


def test_rows_that_change_nothing_are_known_too(make: Make) -> None:
    pipeline = make(PROGRAM, fault_tolerance=EXACTLY_ONCE)
    pipeline.start()
    pushed(pipeline, "first", {"id": 1, "v": 1}, table="t")
    pushed(pipeline, "same", {"id": 1, "v": 1}, table="t")
    pushed(pipeline, "newer", {"id": 1, "v": 2}, table="t")
    pipeline.kill()
    pipeline.start()
    assert pushed(pipeline, "same", {"id": 1, "v": 1}, table="t")["already_there"] is True
    assert pipeline.query("SELECT v FROM kept") == [{"v": 2}]


def test_what_a_transaction_has_collected_is_known_until_it_is_undone(make: Make) -> None:
    pipeline = make(PROGRAM, fault_tolerance=EXACTLY_ONCE)
    pipeline.start()

    def sent(key: str) -> bool:
        path = f"/deployments/{pipeline.deployment_id}/ingress/log"
        answer = pipeline.http.post(
            path, params={"format": "json", "update_format": "raw"}, content='{"x": 1}', headers={"Idempotency-Key": key}
        )
        return bool(answer.json()["already_there"])

    assert pipeline.post("start_transaction").status_code == 200
    assert [sent("a"), sent("a")] == [False, True]
    pipeline.kill()
    pipeline.start()
    assert logged(pipeline) == []
    assert pipeline.post("start_transaction").status_code == 200
    assert [sent("a"), sent("a")] == [False, True]
    assert pipeline.post("commit_transaction").status_code == 200
    deadline = time.monotonic() + 60
    while logged(pipeline) != [(1, 1)]:
        assert time.monotonic() < deadline, pipeline.log
        time.sleep(0.05)
    pipeline.kill()
    pipeline.start()
    assert pushed(pipeline, "a", {"x": 1})["already_there"] is True


def test_rows_of_a_transaction_that_changes_nothing_are_known_too(make: Make) -> None:
    pipeline = make(PROGRAM, fault_tolerance=EXACTLY_ONCE)
    pipeline.start()
    pushed(pipeline, "first", {"id": 1, "v": 1}, table="t")
    assert pipeline.post("start_transaction").status_code == 200
    pushed(pipeline, "same", {"id": 1, "v": 1}, table="t", awaited=False)
    assert pipeline.post("commit_transaction").status_code == 200
    # It is processed after the commit.
    pushed(pipeline, "newer", {"id": 1, "v": 2}, table="t")
    pipeline.kill()
    pipeline.start()
    assert pushed(pipeline, "same", {"id": 1, "v": 1}, table="t")["already_there"] is True
    assert pipeline.query("SELECT v FROM kept") == [{"v": 2}]


def test_a_table_that_starts_anew_has_forgotten_its_keys(make: Make) -> None:
    pipeline = make(PROGRAM, fault_tolerance=EXACTLY_ONCE)
    pipeline.start()
    pushed(pipeline, "a", {"x": 1})
    pushed(pipeline, "a", {"id": 1, "v": 1}, table="t")
    pipeline.suspend()
    pipeline.program = PROGRAM.replace("CREATE TABLE log (x INT)", "CREATE TABLE log (x INT, y INT)")
    pipeline.start(bootstrap_policy="allow")
    assert pushed(pipeline, "a", {"id": 1, "v": 1}, table="t")["already_there"] is True
    assert pushed(pipeline, "a", {"x": 1})["already_there"] is False
    assert logged(pipeline) == [(1, 1)]


def test_rows_that_wait_or_cannot_be_read_are_sent_again(make: Make) -> None:
    pipeline = make(PROGRAM)
    pipeline.start("Paused", initial="paused")
    answers: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda: answers.append(pushed(pipeline, "a", {"x": 1}))) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    assert answers == []
    pipeline.post("resume")
    for thread in threads:
        thread.join(60)
    assert sorted(answer["already_there"] for answer in answers) == [False, True, True]
    assert logged(pipeline) == [(1, 1)]
    # The rows that can be read are taken once, and the errors are told each time.
    for _ in range(2):
        path = f"/deployments/{pipeline.deployment_id}/ingress/log"
        params = {"format": "json", "update_format": "raw"}
        bad = pipeline.http.post(path, params=params, content='{"x": 2}\n{"x": "no"}', headers={"Idempotency-Key": "b"})
        assert (bad.status_code, bad.json()["error_code"]) == (400, "ParseErrors")
    pushed(pipeline, None, {"x": 3})
    assert logged(pipeline) == [(1, 1), (2, 1), (3, 1)]
    refused = pipeline.http.post(path, content="x\n1\n", headers={"Idempotency-Key": ""})
    assert (refused.status_code, refused.json()["error_code"]) == (400, "InvalidParam")


def test_rows_that_wait_are_taken_when_they_are_sent_again_by_force(make: Make) -> None:
    pipeline = make(PROGRAM)
    pipeline.start("Paused", initial="paused")
    answers: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: answers.append(pushed(pipeline, "a", {"x": 1})))
    waiting.start()
    time.sleep(0.5)
    assert answers == []
    assert pushed(pipeline, "a", {"x": 1}, force=True)["already_there"] is True
    waiting.join(60)
    assert [answer["already_there"] for answer in answers] == [False]
    assert logged(pipeline) == [(1, 1)]


def test_forced_rows_are_taken_alone() -> None:
    received: list[int] = []
    intake = Intake(threading.Condition(), lambda records, _size: received.append(records))
    waiting, other = push("t a"), push("t b")
    for each in (waiting, other):
        intake.push(each, force=False)
    intake.force("t a")
    assert (waiting.accepted.done(), other.accepted.done(), received) == (True, False, [1])
    assert intake.take() == [waiting]
    intake.force("t a")
    intake.set_open(True)
    assert intake.take() == [other], "nothing is taken twice"
