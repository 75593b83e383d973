"""One pipeline that follows a view of another one on a real host, through what stands in for the service."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.connectors.waits import set_waits
from tests.fixtures.followed import ServiceOfOne
from tests.host.driver import Make, Pipeline

EXACTLY_ONCE = {"model": "exactly_once", "checkpoint_interval_secs": None}
UPSTREAM = """
CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, customer VARCHAR, amount DECIMAL(10, 2));
CREATE MATERIALIZED VIEW totals AS SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer;
CREATE VIEW plain AS SELECT id FROM orders;
"""
TOTALS = "SELECT * FROM totals ORDER BY customer"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceOfOne]:
    set_waits(monkeypatch, first_s=0.01, longest_s=0.05)
    made = ServiceOfOne()
    yield made
    made.close()


def follower(service: ServiceOfOne, view: str = "totals", key: str = " NOT NULL PRIMARY KEY") -> str:
    config = {"url": service.url, "pipeline": "shop", "view": view}
    declared = [{"name": "shop", "transport": {"name": "pipeline_input", "config": config}}]
    return f"""
        CREATE TABLE totals (customer VARCHAR{key}, n BIGINT, total DECIMAL(38, 2))
            WITH ('materialized' = 'true', 'connectors' = '{json.dumps(declared)}');
        CREATE MATERIALIZED VIEW largest AS SELECT MAX(total) AS total, SUM(n) AS n FROM totals;
    """


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


def equal(one: Pipeline, other: Pipeline) -> bool:
    assert source_of(other)["fatal_error"] is None
    return one.query(TOTALS) == other.query(TOTALS)


def source_of(pipeline: Pipeline) -> dict[str, Any]:
    wire: dict[str, Any] = pipeline.get("tables/totals/connectors/shop/stats").json()
    return wire


@pytest.mark.core("no key", slow_because="two pipelines are killed in turns")
@pytest.mark.parametrize("key", [" NOT NULL PRIMARY KEY", ""], ids=["key", "no key"])
def test_the_table_equals_the_view_whatever_is_killed(make: Make, service: ServiceOfOne, key: str) -> None:
    above = make(UPSTREAM, fault_tolerance=EXACTLY_ONCE)
    below = make(follower(service, key=key), fault_tolerance=EXACTLY_ONCE)
    below.start()
    wait_for(lambda: "does not run" in str(source_of(below)["health"]["description"]))
    above.start()
    service.ask = lambda tail: above.http.get(f"/deployments/{above.deployment_id}/{tail}")
    above.insert("orders", *({"id": n, "customer": "anna" if n % 2 else "bob", "amount": n} for n in range(1, 5)))
    wait_for(lambda: equal(above, below))
    assert below.query("SELECT * FROM largest") == [{"total": 6.0, "n": 4}]
    assert service.whole == 1
    # Changes come one by one, and contents no more: also after the kill of one of the two, and a stop of the other.
    above.ingest("orders", {"delete": {"id": 4}}, {"insert": {"id": 9, "customer": "carl", "amount": 100}})
    wait_for(lambda: equal(above, below))
    below.kill()
    above.ingest("orders", {"insert": {"id": 10, "customer": "anna", "amount": 1}})
    below.start()
    wait_for(lambda: equal(above, below))
    # A step may be faster than the first question after the start.
    ask, service.ask = service.ask, None
    above.kill()
    above.start()
    above.ingest("orders", {"insert": {"id": 11, "customer": "dora", "amount": 1}}, {"delete": {"id": 9}})
    service.ask = ask
    wait_for(lambda: equal(above, below))
    above.checkpoint()
    above.suspend()
    above.start()
    above.ingest("orders", {"delete": {"id": 11}})
    wait_for(lambda: equal(above, below))
    assert service.whole == 1
    # Both at once: what the one has forgotten, the other is told by the contents.
    below.kill()
    above.ingest("orders", {"insert": {"id": 12, "customer": "emil", "amount": 5}})
    above.kill()
    above.start()
    above.ingest("orders", {"delete": {"id": 1}}, {"delete": {"id": 2}})
    below.start()
    wait_for(lambda: equal(above, below))
    assert service.whole == 2
    source = source_of(below)
    assert (source["fatal_error"], source["metrics"]["num_parse_errors"]) == (None, 0)
    assert source["metrics"]["lag"] == {"records": 0, "bytes": None, "seconds": None}


def test_another_history_is_taken_over(make: Make, service: ServiceOfOne) -> None:
    # Without a journal a kill takes steps back that were read already.
    above = make(UPSTREAM, fault_tolerance={"model": "at_least_once", "checkpoint_interval_secs": None})
    below = make(follower(service), fault_tolerance=EXACTLY_ONCE)
    above.start()
    service.ask = lambda tail: above.http.get(f"/deployments/{above.deployment_id}/{tail}")
    above.insert("orders", {"id": 1, "customer": "anna", "amount": 1})
    above.checkpoint()
    below.start()
    above.insert("orders", {"id": 2, "customer": "bob", "amount": 2})
    wait_for(lambda: len(below.query(TOTALS)) == 2)
    above.kill()
    above.start()
    wait_for(lambda: below.query(TOTALS) == [{"customer": "anna", "n": 1, "total": 1.0}])
    # Another query of the view.
    above.suspend()
    above.program = UPSTREAM.replace("SUM(amount)", "SUM(amount) * 10")
    above.runtime_config["bootstrap_policy"] = "allow"
    above.start(bootstrap_policy="allow")
    wait_for(lambda: below.query(TOTALS) == [{"customer": "anna", "n": 1, "total": 10.0}])
    # An emptied one, whose steps have the same numbers as before.
    above.kill()
    above.folder = above.folder.parent / "anew"
    above.folder.mkdir()
    above.start()
    wait_for(lambda: below.query(TOTALS) == [])
    above.insert("orders", {"id": 3, "customer": "carl", "amount": 3})
    wait_for(lambda: equal(above, below))
    assert source_of(below)["fatal_error"] is None


def test_what_cannot_be_followed(make: Make, service: ServiceOfOne) -> None:
    above = make(UPSTREAM)
    above.start()
    service.ask = lambda tail: above.http.get(f"/deployments/{above.deployment_id}/{tail}")
    for view, part in (
        (
            "plain",
            "The view plain is not materialized, so its changes cannot be followed: declare it with CREATE MATERIALIZED",
        ),
        ("nothing", "There is no view or table nothing; views: plain, totals; tables: "),
    ):
        below = make(follower(service, view))
        below.start()
        wait_for(lambda given=below: source_of(given)["fatal_error"] is not None)  # type: ignore[misc]
        assert part in source_of(below)["fatal_error"]
        below.insert("totals", {"customer": "anna"})
        below.kill()
    for parameters, status in (({"after": "x"}, 400), ({"wait_ms": -1}, 400), ({"wait_ms": 40_000}, 400)):
        assert above.get("changes/totals", **parameters).status_code == status
