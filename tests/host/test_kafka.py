"""Pipelines between topics of Kafka: the programs of the connectors' page, and stops by force."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.kafka import Kafka
from tests.host.driver import Pipeline
from tools.kafka_broker import Broker

PAGE = Path(__file__).parents[2] / "docs" / "kafka.md"
READS, WRITES = (found[1] for found in list(re.finditer(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL))[:2])
TABLE = READS[: READS.index("CREATE MATERIALIZED VIEW")]
EXACTLY_ONCE = {"model": "exactly_once", "checkpoint_interval_secs": 1}
Make = Callable[..., Pipeline]


def wait_until(holds: Callable[[], bool], pipeline: Pipeline, what: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, f"{what}\n{pipeline.stats(include_connector_errors=True)}\n{pipeline.log}"
        time.sleep(0.05)


def orders(*rows: tuple[int, str, float]) -> list[str]:
    return [json.dumps({"id": number, "customer": customer, "amount": amount}) for number, customer, amount in rows]


def target(kafka: Kafka, topic: str) -> tuple[dict[str, tuple[int, float]], int]:
    """What the changes in a topic add up to, and how many do not follow from those before them."""
    view: dict[str, tuple[int, float]] = {}
    wrong = 0
    for record in kafka.read(topic):
        change = json.loads(record.value or b"")["payload"]
        before, after = change["before"], change["after"]
        name = (before or after)["customer"]
        wrong += view.get(name) != (None if before is None else (before["orders"], before["amount"]))
        view.pop(name, None)
        if after is not None:
            view[name] = (after["orders"], after["amount"])
    return view, wrong


@pytest.fixture
def own(new_broker: Callable[[], Broker]) -> Kafka:
    """A broker that the test may stop."""
    return Kafka(new_broker())


def test_the_programs_of_the_page(make: Make, own: Kafka) -> None:
    own.create("orders", 2)
    own.create("totals", 2)
    own.send("orders", *orders((1, "a", 1.5), (2, "b", 2), (3, "a", 3)))
    pipeline = make(TABLE + WRITES, env={"KAFKA": own.address}, fault_tolerance=EXACTLY_ONCE)
    pipeline.start()
    wait_until(lambda: target(own, "totals") == ({"a": (2, 4.5), "b": (1, 2)}, 0), pipeline, "the first orders")
    # Stopped by force, which leaves no checkpoint of its own.
    pipeline.kill()
    own.send("orders", *orders((4, "c", 4)), partition=1)
    pipeline.start()
    wait_until(lambda: target(own, "totals") == ({"a": (2, 4.5), "b": (1, 2), "c": (1, 4)}, 0), pipeline, "what came meanwhile")
    # The broker goes while the pipeline runs, and comes back.
    own.broker.kill()
    wait_until(lambda: pipeline.stats()["inputs"][0]["health"]["status"] == "Unhealthy", pipeline, "a missing broker is shown")
    own.broker.start()
    own.send("orders", "poison", *orders((5, "c", 1)))
    wait_until(lambda: target(own, "totals") == ({"a": (2, 4.5), "b": (1, 2), "c": (2, 5)}, 0), pipeline, "it goes on by itself")
    [source] = pipeline.stats(include_connector_errors=True)["inputs"]
    assert source["metrics"]["num_parse_errors"] == 1
    assert "topic orders, partition 0, offset 3: malformed JSON" in source["parse_errors"][0]["message"]
    pipeline.suspend()
    # As after seven days: the checkpoint says that all was delivered, which is enough to go on.
    [group] = [each.group_id for each in own.admin.list_consumer_groups().result(30).valid if "totals" in each.group_id]
    own.admin.delete_consumer_groups([group])[group].result(30)
    own.send("orders", *orders((6, "d", 6)))
    pipeline.start()
    wait_until(lambda: target(own, "totals")[0].get("d") == (1, 6), pipeline, "after a stop with a checkpoint")
    assert target(own, "totals")[1] == 0
    stats: dict[str, Any] = pipeline.stats()
    assert [each["health"]["status"] for each in (*stats["inputs"], *stats["outputs"])] == ["Healthy", "Healthy"]
    assert pipeline.query("SELECT COUNT(*) AS n FROM totals") == [{"n": 4}]
