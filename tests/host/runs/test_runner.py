"""How an incarnation ends: steps that fail, and a take-down."""

from __future__ import annotations

import json
import time
import weakref

import pytest

from tests.host.driver import Make, Pipeline
from tests.inprocess_host import InProcessHost

pytestmark = pytest.mark.core

ENDLESS = """
CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v INT);
CREATE FUNCTION forever(x BIGINT) RETURNS BIGINT;
CREATE MATERIALIZED VIEW {view};
"""


FOREVER = "def forever(x: int) -> int:\n    while True:\n        x = x + 1\n"


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


@pytest.mark.parametrize("path", ["stats", "query", "steps"])
def test_nothing_is_left_after_a_take_down(running: Pipeline, warm_host: InProcessHost, path: str) -> None:
    runner = weakref.ref(warm_host.fleet.get(running.deployment_id))
    running.kill()
    assert running.deployment_id not in warm_host.fleet.deployments
    assert runner() is None, "what the pipeline has in Python, and so in the JVM, is not kept until Python collects its garbage"
    assert running.get(path, sql="SELECT 1").status_code == 404


@pytest.mark.core("view0")
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
