"""One pipeline follows another: the program of the page over a real service, and two real hosts that are killed."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from airflow_pipelines import PipelineBuilder, PipelineClient, RuntimeConfig
from tests.fixtures.followed import ServiceOfOne
from tests.fixtures.sdk import eventually
from tools.chaos.process import HostProcess

pytestmark = pytest.mark.integration

PAGE = Path(__file__).parents[2] / "docs" / "connectors.md"
EXACTLY_ONCE = {"fault_tolerance": {"model": "exactly_once", "checkpoint_interval_secs": 1}}
UPSTREAM = """
CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, customer VARCHAR, amount DECIMAL(10, 2));
CREATE MATERIALIZED VIEW totals AS SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer;
"""
TOTALS = "SELECT customer, n, total FROM totals ORDER BY customer"


def test_the_programs_of_the_page(embedded_client: PipelineClient, served_url: str) -> None:
    section = PAGE.read_text().partition("## pipeline_input")[2]
    following, followed = re.findall(r"```sql\n(.*?)```", section, re.DOTALL)[:2]
    shop = PipelineBuilder(embedded_client, "shop", followed).create_or_replace(timeout_s=60)
    config = RuntimeConfig(env={"SERVICE": served_url, "SERVICE_KEY": "of nobody, and nobody asks for it"})
    follower = PipelineBuilder(embedded_client, "follows-shop", following, runtime_config=config).create_or_replace(timeout_s=60)
    try:
        # The one that is followed may come later, and stop for a while.
        follower.start(timeout_s=60)
        shop.start(timeout_s=60)
        shop.input_json("orders", [{"id": n, "customer": "anna" if n % 2 else "bob", "amount": n} for n in range(1, 5)])
        eventually(lambda: list(follower.query("SELECT * FROM largest")) == [{"total": Decimal(6)}], 60)
        shop.stop(force=False, timeout_s=60)
        shop.start(timeout_s=60)
        shop.input_json("orders", [{"id": 9, "customer": "anna", "amount": 100}])
        eventually(lambda: list(follower.query("SELECT * FROM largest")) == [{"total": Decimal(104)}], 60)
    finally:
        for pipeline in (follower, shop):
            pipeline.stop(force=True, timeout_s=60)
            pipeline.delete(clear_storage=True)


class Writer:
    """Changes the orders, from a thread of its own. What a kill leaves without an answer is sent again."""

    def __init__(self, host: HostProcess) -> None:
        self._host = host
        self._dice = random.Random(11)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.answered = 0
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._ended.is_set():
            changes = [self._change() for _ in range(self._dice.randint(1, 20))]
            while not self._sent("\n".join(map(json.dumps, changes))) and not self._ended.wait(0.05):
                pass
            self._ended.wait(0.02)

    def _change(self) -> dict[str, Any]:
        number = self._dice.randrange(300)
        if self._dice.random() < 0.3:
            return {"delete": {"id": number}}
        return {"insert": {"id": number, "customer": f"c{self._dice.randrange(20)}", "amount": self._dice.randrange(10_000) / 100}}

    def _sent(self, rows: str) -> bool:
        try:
            answer = self._host.http.post("/ingress/orders", params={"format": "json"}, content=rows)
        except (httpx.HTTPError, RuntimeError):
            return False
        self.answered += answer.status_code == 200
        return answer.status_code == 200


@pytest.fixture
def new_host(tmp_path: Path) -> Iterator[Callable[[str], HostProcess]]:
    hosts: list[HostProcess] = []

    def new(name: str) -> HostProcess:
        (tmp_path / name).mkdir()
        hosts.append(HostProcess(tmp_path / name, EXACTLY_ONCE))
        return hosts[-1]

    yield new
    for host in hosts:
        host.kill()


def rows(host: HostProcess) -> list[dict[str, Any]]:
    answer = host.http.get("/query", params={"sql": TOTALS, "format": "json"})
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def wait_for_work(writer: Writer, above: HostProcess, below: HostProcess) -> None:
    """Let rows come in and through, while the two work."""
    answered, before, deadline = writer.answered, rows(below), time.monotonic() + 60
    while writer.answered < answered + 20 or rows(below) == before:
        assert time.monotonic() < deadline, above.http.get("/stats").text + below.http.get("/stats").text
        time.sleep(0.1)


@pytest.mark.timeout(600)
def test_the_table_equals_the_view_after_kills(new_host: Callable[[str], HostProcess]) -> None:
    above, below = new_host("above"), new_host("below")
    service, dice = ServiceOfOne(), random.Random()
    service.ask = lambda tail: above.http.get(f"/{tail}")
    connector = {"transport": {"name": "pipeline_input", "config": {"url": service.url, "pipeline": "shop", "view": "totals"}}}
    # Without a key each row that came twice would be seen, and each that goes without being there.
    following = f"""
        CREATE TABLE totals (customer VARCHAR, n BIGINT, total DECIMAL(38, 2))
            WITH ('materialized' = 'true', 'connectors' = '{json.dumps([connector])}');
    """
    try:
        above.start(UPSTREAM)
        writer = Writer(above)
        below.start(following)
        try:
            wait_for_work(writer, above, below)
            time.sleep(dice.random())
            above.kill()
            above.start(UPSTREAM)
            wait_for_work(writer, above, below)
            time.sleep(dice.random())
            below.kill()
            below.start(following)
            wait_for_work(writer, above, below)
        finally:
            writer.stop()
        eventually(lambda: rows(above) == rows(below), 60)
        [source] = below.http.get("/stats", params={"include_connector_errors": True}).json()["inputs"]
        assert source["fatal_error"] is None
        assert source["metrics"]["num_parse_errors"] == 0, source
        assert len(rows(below)) > 10
    finally:
        service.close()
