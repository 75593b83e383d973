"""What requests bring waits for the pipeline's thread."""

from __future__ import annotations

import json
import threading
import time

import pytest

from tests.host.driver import Make, totals
from tests.inprocess_host import InProcessHost

pytestmark = pytest.mark.core


def test_requests_that_wait_together_share_a_step(make: Make, warm_host: InProcessHost) -> None:
    pipeline = make()
    pipeline.start("Paused", initial="paused")
    answers = []

    def push(number: int) -> None:
        answers.append(pipeline.post("ingress/t", json.dumps({"insert": {"id": number, "v": 1}}), format="json"))

    threads = [threading.Thread(target=push, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    blocked = warm_host.fleet.get(pipeline.deployment_id)._attempt._intake._blocked
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
