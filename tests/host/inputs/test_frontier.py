"""How far an input's rows are delivered."""

from __future__ import annotations

from airflow_pipelines.host.inputs.inputs import Consumed, InputEndpoint


def test_the_frontier_is_what_all_outputs_have_delivered() -> None:
    endpoint = InputEndpoint("t.file", "t")
    for offset in (3, 5, 9):
        endpoint.count_received(2, 20)
        endpoint.consume(Consumed(2, 20, {"offset": offset}))
    assert endpoint.to_wire()["completed_frontier"] is None
    endpoint.complete_until(4)
    reached = endpoint.to_wire()["completed_frontier"]
    assert reached["metadata"] == {"offset": 5}
    assert reached["ingested_at"] <= reached["processed_at"] <= reached["completed_at"]
    # Rows that were pushed have no place in a source.
    endpoint.consume(Consumed(1, 10))
    endpoint.complete_until(5)
    assert endpoint.to_wire()["completed_frontier"] == reached
    endpoint.complete()
    assert endpoint.to_wire()["completed_frontier"]["metadata"] == {"offset": 9}
