"""The life of a pipeline on a host: steps, restarts, approval, refusals, failures."""

from __future__ import annotations

import json
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from airflow_pipelines.host.inprocess import InProcessHost
from tests.host.driver import PROGRAM, Pipeline

Make = Callable[..., Pipeline]
MORE = PROGRAM.replace("v > 10", "v > 20") + "CREATE MATERIALIZED VIEW most AS SELECT MAX(v) AS v FROM t;"
ROWS = ({"id": 1, "v": 5, "name": "a"}, {"id": 2, "v": 15, "name": "a"}, {"id": 3, "v": 25, "name": "b"})
TOTALS = [{"name": "a", "total": 20, "n": 2}, {"name": "b", "total": 25, "n": 1}]


def totals(pipeline: Pipeline) -> list[dict[str, object]]:
    return pipeline.query("SELECT * FROM totals ORDER BY name")


def test_rows_are_processed_and_queried(running: Pipeline) -> None:
    assert running.statuses() == ["Initializing", "Running"]
    assert running.transitions()[-1].details == {"connector_stats": {"num_errors": 0}}
    running.insert("t", *ROWS)
    assert totals(running) == TOTALS
    running.ingest("t", {"delete": {"id": 1}}, {"insert": {"id": 3, "v": 30, "name": "b"}})
    assert totals(running) == [{"name": "a", "total": 15, "n": 1}, {"name": "b", "total": 30, "n": 1}]
    metrics = running.stats()["global_metrics"]
    assert metrics["total_input_records"] == metrics["total_processed_records"] == metrics["total_completed_records"] == 5
    steps = running.get("steps").json()
    assert [step["input_rows"] > 0 for step in steps] == [True, True]
    assert {figure["view"] for figure in steps[-1]["operators"]} >= {"totals"}


def test_ad_hoc_changes_are_visible_at_once(running: Pipeline) -> None:
    assert running.query("INSERT INTO t VALUES (1, 5, 'a'), (2, 7, 'a')") == [{"count": 2}]
    assert totals(running) == [{"name": "a", "total": 12, "n": 2}]
    running.query("DELETE FROM t WHERE v < 6")
    assert totals(running) == [{"name": "a", "total": 7, "n": 1}]


def test_requests_that_wait_together_share_a_step(make: Make, warm_host: InProcessHost) -> None:
    pipeline = make()
    pipeline.start("Paused", initial="paused")
    answers = []

    def push(number: int) -> None:
        answers.append(pipeline.post("ingress/t", json.dumps({"insert": {"id": number, "v": 1}}), format="json"))

    threads = [threading.Thread(target=push, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    blocked = warm_host.fleet.get(pipeline.deployment_id)._intake._blocked
    deadline = time.monotonic() + 30
    while len(blocked) < len(threads):
        assert time.monotonic() < deadline, "not all requests have come in"
        time.sleep(0.01)
    assert answers == []
    assert pipeline.stats()["global_metrics"]["total_input_records"] == 0
    pipeline.post("resume")
    for thread in threads:
        thread.join(30)
    assert [answer.status_code for answer in answers] == [200] * 8
    for answer in answers:
        pipeline.await_token(answer.json()["token"])
    assert pipeline.query("SELECT COUNT(*) AS n FROM t") == [{"n": 8}]
    assert len(pipeline.get("steps").json()) <= 2


def test_a_paused_pipeline_takes_forced_rows_and_answers_queries(make: Make) -> None:
    pipeline = make()
    pipeline.start("Paused", initial="paused")
    pipeline.ingest("t", {"insert": {"id": 1, "v": 1, "name": "a"}}, force=True)
    assert totals(pipeline) == [{"name": "a", "total": 1, "n": 1}]
    assert pipeline.stats()["global_metrics"]["state"] == "Paused"
    pipeline.post("resume")
    pipeline.wait_for("Running")
    pipeline.post("pause")
    pipeline.wait_for("Paused")
    assert pipeline.statuses() == ["Initializing", "Paused", "Running", "Paused"]


def test_a_graceful_stop_and_a_start_go_on_where_they_were(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    first = pipeline.stats()["global_metrics"]
    last = pipeline.suspend()
    assert last.checkpoints is not None
    assert [sorted(entry) for entry in last.checkpoints] == [
        ["fingerprint", "identifier", "processed_records", "size", "steps", "uuid"]
    ]
    assert last.checkpoints[0]["processed_records"] == 3
    pipeline.start()
    assert pipeline.statuses() == ["Initializing", "Running"]
    assert totals(pipeline) == TOTALS
    again = pipeline.stats()["global_metrics"]
    assert again["total_processed_records"] == 3
    assert again["initial_start_time"] == first["initial_start_time"]
    pipeline.insert("t", {"id": 4, "v": 1, "name": "b"})
    assert totals(pipeline)[1] == {"name": "b", "total": 26, "n": 2}


def test_committed_steps_survive_every_kill_without_a_checkpoint(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", ROWS[0])
    pipeline.insert("t", ROWS[1])
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT COUNT(*) AS n FROM t") == [{"n": 2}]
    assert pipeline.get("checkpoints").json() == []
    # The chain: a recovery point, a new incarnation without a checkpoint, killed again.
    pipeline.insert("t", ROWS[2])
    pipeline.kill()
    pipeline.start()
    assert totals(pipeline) == TOTALS
    pipeline.kill()
    pipeline.start()
    assert totals(pipeline) == TOTALS
    assert pipeline.stats()["global_metrics"]["total_processed_records"] == 3


def test_after_a_checkpoint_a_kill_goes_back_to_it(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS[:2])
    assert pipeline.checkpoint() == 0
    pipeline.insert("t", ROWS[2])
    pipeline.kill()
    for _ in range(2):
        pipeline.start()
        assert pipeline.query("SELECT COUNT(*) AS n FROM t") == [{"n": 2}]
        pipeline.kill()


def test_a_token_says_whether_a_kill_can_lose_its_rows_and_a_checkpoint_makes_them_durable(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    # Until there is a checkpoint, each step is in the journal.
    first = pipeline.insert("t", ROWS[0])
    assert pipeline.get("completion_status", token=first).json()["durable"] is True
    pipeline.checkpoint()
    second = pipeline.insert("t", ROWS[1])
    complete = pipeline.get("completion_status", token=second)
    assert (complete.status_code, complete.json()["status"], complete.json()["durable"]) == (200, "complete", False)
    deadline = time.monotonic() + 30
    while (answer := pipeline.get("completion_status", token=second, checkpoint=True)).json()["status"] != "complete":
        assert (answer.status_code, answer.json()) == (202, {"status": "inprogress", "step": None, "durable": False})
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert answer.json()["durable"] is True
    pipeline.insert("t", ROWS[2])
    # One checkpoint, however often it was asked.
    assert pipeline.get("checkpoint_status").json()["success"] == 1
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT COUNT(*) AS n FROM t") == [{"n": 2}], "the third was promised nothing"


def test_exactly_once_replays_what_came_after_the_checkpoint(make: Make) -> None:
    pipeline = make(fault_tolerance={"model": "exactly_once", "checkpoint_interval_secs": 60})
    pipeline.start()
    pipeline.insert("t", *ROWS[:2])
    pipeline.checkpoint()
    pipeline.insert("t", ROWS[2])
    pipeline.kill()
    pipeline.start()
    assert pipeline.statuses() == ["Initializing", "Replaying", "Running"]
    assert totals(pipeline) == TOTALS


def test_a_changed_program_awaits_approval_and_keeps_what_it_can(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    pipeline.suspend()
    pipeline.program = MORE
    waiting = pipeline.start("AwaitingApproval")
    assert waiting.details is not None
    diff = waiting.details["approval_diff"]
    assert diff["program_diff"] == {
        "added_tables": [],
        "removed_tables": [],
        "modified_tables": [],
        "added_views": ["most"],
        "removed_views": [],
        "modified_views": ["large"],
    }
    assert waiting.details["connector_stats"] == {"num_errors": 0}
    assert pipeline.get("stats").status_code == 503
    assert pipeline.get("stats").json()["error_code"] == "AwaitingApproval"
    assert pipeline.post("approve").status_code == 200
    pipeline.wait_for("Running")
    assert pipeline.statuses() == ["Initializing", "AwaitingApproval", "Bootstrapping", "Running"]
    assert pipeline.query("SELECT * FROM most") == [{"v": 25}]
    assert totals(pipeline) == TOTALS
    pipeline.insert("t", {"id": 4, "v": 50, "name": "a"})
    assert pipeline.query("SELECT * FROM most") == [{"v": 50}]


def test_stopping_instead_of_approving_keeps_the_checkpoint(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    pipeline.suspend()
    pipeline.program = MORE
    pipeline.start("AwaitingApproval")
    pipeline.suspend()
    pipeline.start("AwaitingApproval")
    pipeline.kill()
    pipeline.program = PROGRAM
    pipeline.start()
    assert totals(pipeline) == TOTALS


def test_a_change_after_a_kill_without_checkpoint_still_needs_approval(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    pipeline.kill()
    pipeline.program = MORE
    pipeline.start("AwaitingApproval")
    pipeline.post("approve")
    pipeline.wait_for("Running")
    assert pipeline.query("SELECT * FROM most") == [{"v": 25}]
    assert totals(pipeline) == TOTALS
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT * FROM most") == [{"v": 25}]


def test_rejected_changes_end_the_start_and_keep_the_checkpoint(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    pipeline.suspend()
    pipeline.program = MORE
    failed = pipeline.start("Stopped", bootstrap_policy="reject")
    assert failed.error is not None
    assert failed.error["error_code"] == "BootstrapRejected"
    assert "added views: most" in failed.error["message"]
    assert "modified views: large" in failed.error["message"]
    pipeline.kill()
    pipeline.start("Running", bootstrap_policy="allow")
    assert pipeline.query("SELECT * FROM most") == [{"v": 25}]


def test_views_over_tables_that_are_not_materialized_cannot_be_bootstrapped(make: Make) -> None:
    program = "CREATE TABLE plain (x INT); CREATE VIEW v AS SELECT x FROM plain;"
    pipeline = make(program)
    pipeline.start()
    pipeline.insert("plain", {"x": 1})
    pipeline.suspend()
    pipeline.program = program.replace("SELECT x FROM", "SELECT x + 1 AS x FROM")
    failed = pipeline.start("Stopped", bootstrap_policy="allow")
    assert failed.error is not None
    assert failed.error["error_code"] == "BootstrapNotAllowed"
    assert "not materialized" in failed.error["message"]


def test_a_modified_table_starts_empty(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    pipeline.suspend()
    pipeline.program = PROGRAM.replace("name VARCHAR", "name VARCHAR, extra INT")
    pipeline.start("Running", bootstrap_policy="allow")
    assert pipeline.query("SELECT * FROM t") == []
    assert totals(pipeline) == []


def test_white_space_and_comments_are_no_change(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    pipeline.suspend()
    pipeline.program = "-- the same\n" + PROGRAM.replace("SELECT name", "SELECT\n  name")
    pipeline.start("Running", bootstrap_policy="reject")
    assert totals(pipeline) == TOTALS


def test_a_failing_step_names_the_view_and_keeps_nothing(make: Make) -> None:
    pipeline = make(
        "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v INT);"
        "CREATE MATERIALIZED VIEW inverse AS SELECT id, 100 DIV v AS w FROM t;"
    )
    pipeline.start()
    pipeline.insert("t", {"id": 1, "v": 5})
    answer = pipeline.get("query", sql="INSERT INTO t VALUES (2, 0)")
    assert answer.status_code == 500
    assert answer.json()["error_code"] == "RuntimeError.WorkerPanic"
    failed = pipeline.wait_for("Stopped")
    assert failed.error is not None
    assert failed.error["error_code"] == "RuntimeError.WorkerPanic"
    assert "inverse" in failed.error["message"]
    assert "DIVIDE_BY_ZERO" in failed.error["message"]
    assert "inverse" in pipeline.log
    assert "\tat org.apache" not in failed.error["message"]
    pipeline.kill()
    pipeline.start()
    assert pipeline.query("SELECT * FROM t") == [{"id": 1, "v": 5}]


def test_a_constant_that_cannot_be_evaluated_fails_the_first_step_with_rows(make: Make) -> None:
    pipeline = make("CREATE TABLE t (id INT); CREATE MATERIALIZED VIEW v AS SELECT id, 1/0 AS x FROM t;")
    pipeline.start()
    assert pipeline.query("SELECT * FROM v") == []
    pipeline.post("ingress/t", json.dumps({"insert": {"id": 1}}), format="json")
    failed = pipeline.wait_for("Stopped")
    assert failed.error is not None
    assert failed.error["message"].startswith("The step failed while evaluating v: DIVIDE_BY_ZERO: Division by zero.")
    assert failed.error["details"]["expression"] == "1/0"


def test_a_java_error_of_a_step_is_in_the_deployment_error_and_in_the_log(make: Make) -> None:
    pipeline = make("CREATE TABLE t (s VARCHAR); CREATE VIEW v AS SELECT size(xpath(s, '///')) AS n FROM t;")
    pipeline.start()
    pipeline.insert("t", {"s": None})
    pipeline.post("ingress/t", json.dumps({"insert": {"s": "<a/>"}}), format="json")
    failed = pipeline.wait_for("Stopped")
    assert failed.error is not None
    message = failed.error["message"]
    assert "The step failed while evaluating v: " in message
    assert "A location step was expected following the '/' or '//' token" in message
    assert 'for example for the row {"s": "<a/>"} of t' in message
    assert "An error occurred while calling" not in message
    assert "\tat " not in message
    assert "Exception" in failed.error["details"]["condition"]
    # The stack comes before the message, which stays among the log's last lines.
    assert pipeline.log.index("\tat org.apache.spark.sql.catalyst.expressions.xml") < pipeline.log.rindex(message)


def test_two_incarnations_never_run_over_one_folder(make: Make) -> None:
    first, second = make(), make()
    first.start()
    second.folder = first.folder
    failed = second.start("Stopped")
    assert failed.error is not None
    assert "in use by process" in failed.error["message"]
    first.insert("t", ROWS[0])


def test_without_storage_there_is_no_checkpoint_and_no_graceful_stop(make: Make) -> None:
    pipeline = make(storage=False)
    pipeline.start()
    pipeline.insert("t", *ROWS)
    answer = pipeline.post("checkpoint")
    assert (answer.status_code, answer.json()["error_code"]) == (400, "StorageRequired")
    token = pipeline.insert("t", *ROWS)
    assert pipeline.get("completion_status", token=token).json()["durable"] is False
    refused = pipeline.get("completion_status", token=token, checkpoint=True)
    assert (refused.status_code, refused.json()["error_code"]) == (400, "StorageRequired")
    assert pipeline.stats()["suspend_error"] == {"Permanent": ["StorageRequired"]}
    pipeline.post("suspend")
    failed = pipeline.wait_for("Stopped")
    assert failed.error is not None
    assert failed.error["error_code"] == "StorageRequired"


def test_a_program_that_does_not_compile_ends_the_start(make: Make) -> None:
    failed = make("CREATE VIEW v AS SELECT x FROM nowhere;").start("Stopped")
    assert failed.error is not None
    assert failed.error["error_code"] == "StartFailedDueToFailedCompilation"
    assert "nowhere" in failed.error["message"]


def test_periodic_checkpoints_come_with_at_least_once(make: Make) -> None:
    pipeline = make(fault_tolerance={"model": "at_least_once", "checkpoint_interval_secs": 1})
    pipeline.start()
    pipeline.insert("t", *ROWS)
    deadline = time.monotonic() + 20
    while not pipeline.get("checkpoints").json():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    pipeline.kill()
    pipeline.start()
    assert totals(pipeline) == TOTALS


@pytest.mark.parametrize("path", ["stats", "query", "steps"])
def test_nothing_is_left_after_a_take_down(running: Pipeline, warm_host: InProcessHost, path: str) -> None:
    runner = weakref.ref(warm_host.fleet.get(running.deployment_id))
    running.kill()
    assert running.deployment_id not in warm_host.fleet.deployments
    assert runner() is None, "what the pipeline has in Python, and so in the JVM, is not kept until Python collects its garbage"
    assert running.get(path, sql="SELECT 1").status_code == 404


ENDLESS = """
CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v INT);
CREATE FUNCTION forever(x BIGINT) RETURNS BIGINT;
CREATE MATERIALIZED VIEW {view};
"""
FOREVER = "def forever(x: int) -> int:\n    while True:\n        x = x + 1\n"


@pytest.mark.parametrize(
    "view",
    [
        "counted AS SELECT t.id, COUNT(*) AS n FROM t CROSS JOIN range(100000000000000) r WHERE r.id % 7 = 3 GROUP BY t.id",
        "looped AS SELECT forever(id) AS n FROM t",
    ],
)
def test_an_endless_step_ends_with_its_pipeline_and_nothing_else(make: Make, running: Pipeline, view: str) -> None:
    pipeline = make(ENDLESS.format(view=view))
    pipeline.start(udf_python=FOREVER)
    assert pipeline.post("ingress/t", '{"insert": {"id": 1, "v": 1}}', format="json").status_code == 200
    deadline = time.monotonic() + 20
    context = pipeline.host.fleet._spark.sparkContext
    while not context.statusTracker().getActiveJobsIds():
        assert time.monotonic() < deadline, pipeline.log
        time.sleep(0.02)
    pipeline.kill()
    running.insert("t", {"id": 1, "v": 11, "name": "a"})
    assert running.query("SELECT id FROM t") == [{"id": 1}]
