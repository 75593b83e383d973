"""The program of the connectors' page that keeps a view in Redis."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.redis import RedisServer
from tests.host.driver import Pipeline

PAGE = (Path(__file__).parents[2] / "docs" / "connectors.md").read_text()
SECTION = PAGE.partition("## redis_output")[2]
PROGRAM = SECTION.partition("```sql\n")[2].partition("```")[0]


@pytest.mark.core
def test_the_program_of_the_page_keeps_a_view_in_redis(
    make: Callable[..., Pipeline], redis_server: RedisServer, redis_url: str
) -> None:
    fault_tolerance = {"model": "exactly_once", "checkpoint_interval_secs": None}
    pipeline = make(PROGRAM, env={"CACHE": redis_url}, fault_tolerance=fault_tolerance)
    pipeline.start()
    orders = [
        {"id": 1, "customer": "anna", "amount": 5},
        {"id": 2, "customer": "anna", "amount": 2.5},
        {"id": 3, "customer": "bob", "amount": 1},
    ]
    pipeline.insert("orders", *orders)
    [shown] = re.findall(r"`GET totals:anna` gives `(.*?)`", SECTION)
    with redis_server.client() as client:
        assert client.get("totals:anna") == shown
        pipeline.ingest("orders", {"delete": {"id": 3}}, {"insert": {"id": 4, "customer": "carl", "amount": 3}})
        assert {key for key in client.scan_iter("totals:*")} == {"totals:anna", "totals:carl"}
        # Stopped by force, with the server stopped meanwhile.
        pipeline.kill()
        redis_server.stop()
        pipeline.start()
        try:
            answer = pipeline.post("ingress/orders", json.dumps({"delete": {"id": 4}}), format="json")
            deadline = time.monotonic() + 60
            while pipeline.stats()["outputs"][0]["health"]["status"] != "Unhealthy":
                assert time.monotonic() < deadline
                time.sleep(0.05)
        finally:
            redis_server.start()
        pipeline.await_token(answer.json()["token"])
        assert {key for key in client.scan_iter("totals:*")} == {"totals:anna"}
