"""The stored form of connectors' states, which checkpoints and journals of all releases share."""

from __future__ import annotations

from airflow_pipelines.engine.storage.connector_state import InputState, OutputState, read_connectors, stored_connectors

ERROR = {"timestamp": "2026-01-02T03:04:05.000006Z", "index": 3, "tag": "parse", "message": "bad"}
NO_ERRORS: dict[str, object] = {"count": 0, "kept": []}
STORED = {
    "t.c": {
        "direction": "input",
        "table": "t",
        "declared": True,
        "position": {"offset": 7, "line": 2},
        "paused": True,
        "figures": {"records": 5, "bytes": 50, "parse_errors": {"count": 9, "kept": [ERROR]}, "transport_errors": NO_ERRORS},
        "waiting": False,
    },
    "t.api-ingress-1": {
        "direction": "input",
        "table": "t",
        "declared": False,
        "position": None,
        "paused": False,
        "figures": {"records": 1, "bytes": 10, "parse_errors": NO_ERRORS, "transport_errors": NO_ERRORS},
    },
    "v.out": {
        "direction": "output",
        "view": "v",
        "figures": {"transmitted_records": 4, "transmitted_bytes": 40, "encode_errors": NO_ERRORS, "transport_errors": NO_ERRORS},
    },
}


def test_what_a_release_has_stored_is_read_and_stored_as_it_was() -> None:
    states = read_connectors(STORED)
    assert stored_connectors(states) == STORED
    declared = states["t.c"]
    assert isinstance(declared, InputState)
    assert (declared.position, declared.waiting, declared.counts.parse_errors.count) == ({"offset": 7, "line": 2}, False, 9)
    assert isinstance(states["v.out"], OutputState)


def test_fields_of_other_releases_are_passed_over_or_may_be_missing() -> None:
    later = {name: {**fields, "later": 1, "figures": {**fields["figures"], "later": 2}} for name, fields in STORED.items()}  # type: ignore[dict-item]
    assert stored_connectors(read_connectors(later)) == STORED
    earlier = read_connectors({"t.c": {"direction": "input", "table": "t", "declared": True}})
    assert earlier == {"t.c": InputState("t")}
