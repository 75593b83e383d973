from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from uuid6 import uuid7

from airflow_pipelines.hooks.pipeline_events import PipelineEventKind, PipelineWatch, Poll

FIRST, SECOND, THIRD = (str(UUID(int=uuid7().int)) for _ in range(3))


def poll(at: float = 0.0, *, stats: Any = None, events: Any = None, identity: str = "one", **fields: Any) -> Poll:
    descriptor = {
        "id": identity,
        "name": "p",
        "version": 1,
        "program_version": 1,
        "program_status": "Success",
        "storage_status_details": None,
    }
    return Poll(descriptor | fields, at, stats, events)


def storage(*checkpoints: str, last_sync: Any = None) -> dict[str, Any]:
    entries = [{"uuid": uuid, "steps": 2, "processed_records": 5, "size": 7} for uuid in checkpoints]
    return {"storage_status_details": {"checkpoints": entries, "last_sync": last_sync}}


def counters(received: int, processed: int | None = None, incarnation: str = "i") -> dict[str, Any]:
    metrics = {
        "total_input_records": received,
        "total_processed_records": received if processed is None else processed,
        "total_completed_records": received,
        "total_completed_steps": 1,
        "incarnation_uuid": incarnation,
    }
    return {"global_metrics": metrics}


def watch(*kinds: str, idle_interval_s: float = 5.0) -> PipelineWatch:
    return PipelineWatch([PipelineEventKind.of(kind) for kind in kinds], idle_interval_s=idle_interval_s)


def restarted(watched: PipelineWatch, *kinds: str) -> PipelineWatch:
    """The same watch in another process."""
    watermark = json.loads(json.dumps(watched.watermark))
    return PipelineWatch([PipelineEventKind.of(kind) for kind in kinds], idle_interval_s=5.0, watermark=watermark)


def test_a_new_checkpoint_is_told_once_with_its_figures() -> None:
    watched = watch("checkpoint")
    assert watched.detect_events(poll(**storage(FIRST))) == [], "what was there before is no event"
    (event,) = watched.detect_events(poll(**storage(SECOND, FIRST)))
    assert event["event"] == "checkpoint"
    assert event["pipeline"] == "p"
    assert event["checkpoint"] == SECOND
    assert event["processed_records"] == 5
    assert watched.detect_events(poll(**storage(SECOND, FIRST))) == []
    # Retention that removes the newest tells nothing.
    assert watched.detect_events(poll(**storage(FIRST))) == []


def test_a_watermark_survives_a_restart_of_the_watcher() -> None:
    watched = watch("checkpoint")
    watched.detect_events(poll(**storage(FIRST)))
    watched.detect_events(poll(**storage(SECOND, FIRST)))
    again = restarted(watched, "checkpoint")
    assert again.detect_events(poll(**storage(SECOND, FIRST))) == []
    assert [event["checkpoint"] for event in again.detect_events(poll(**storage(THIRD, SECOND)))] == [THIRD]


def test_what_happened_while_nobody_watched_is_told_by_the_next_watcher() -> None:
    watched = watch("checkpoint")
    watched.detect_events(poll(**storage()))
    assert [event["checkpoint"] for event in restarted(watched, "checkpoint").detect_events(poll(**storage(FIRST)))] == [FIRST]


def test_a_copy_is_told_also_of_a_checkpoint_that_was_copied_before() -> None:
    watched = watch("sync")
    watched.detect_events(poll())
    first = watched.detect_events(poll(**storage(last_sync={"uuid": FIRST, "synced_at": "2026-01-01T00:00:00.000000Z"})))
    assert [event["checkpoint"] for event in first] == [FIRST]
    again = watched.detect_events(poll(**storage(last_sync={"uuid": FIRST, "synced_at": "2026-01-01T00:00:05.000000Z"})))
    assert [event["synced_at"] for event in again] == ["2026-01-01T00:00:05.000000Z"]


def test_becoming_idle_is_told_and_being_idle_is_not() -> None:
    watched = watch("idle")
    told = []
    for at, received, processed in (
        (0, 10, 10),
        (60, 10, 10),
        (61, 15, 10),
        (62, 15, 15),
        (66, 15, 15),
        (67, 15, 15),
        (90, 15, 15),
    ):
        told += [
            (at, event["total_input_records"]) for event in watched.detect_events(poll(at, stats=counters(received, processed)))
        ]
    assert told == [(67, 15)]
    again = restarted(watched, "idle")
    assert again.detect_events(poll(100, stats=counters(15))) == []
    assert again.detect_events(poll(200, stats=counters(15))) == []


def test_one_that_is_at_work_when_the_watching_begins_becomes_idle() -> None:
    watched = watch("idle")
    assert watched.detect_events(poll(0, stats=counters(10, 8))) == []
    assert watched.detect_events(poll(1, stats=counters(10))) == []
    assert len(watched.detect_events(poll(6, stats=counters(10)))) == 1


def test_a_pipeline_that_does_not_run_is_not_idle() -> None:
    watched = watch("idle")
    watched.detect_events(poll(0))
    assert watched.detect_events(poll(60)) == []
    assert watched.detect_events(poll(70, stats=counters(3))) == []
    # Quiet times before and after a stop do not add up.
    assert watched.detect_events(poll(72)) == []
    assert watched.detect_events(poll(74, stats=counters(3))) == []
    assert watched.detect_events(poll(78, stats=counters(3))) == []
    assert len(watched.detect_events(poll(79, stats=counters(3)))) == 1


def test_one_that_never_got_a_row_does_not_become_idle() -> None:
    watched = watch("idle")
    watched.detect_events(poll(0))
    assert watched.detect_events(poll(10, stats=counters(0))) == []
    assert watched.detect_events(poll(90, stats=counters(0))) == []


def event(number: int, error: str | None = None) -> dict[str, Any]:
    detail = None if error is None else {"error_code": error, "message": f"{error} happened"}
    return {"event_id": f"0190-{number:04}", "recorded_at": f"t{number}", "deployment_error": detail}


def test_each_failure_is_told_also_when_nobody_looked_between_them() -> None:
    watched = watch("failure")
    before = [event(2, "Old"), event(1)]
    assert watched.detect_events(poll(events=before)) == []
    # Several events have the error of one failure.
    after = [event(8), event(7, "Second"), event(6), event(5, "First"), event(4, "First"), event(3), *before]
    told = watched.detect_events(poll(events=after))
    assert [(one["error_code"], one["message"], one["at"]) for one in told] == [
        ("First", "First happened", "t4"),
        ("Second", "Second happened", "t7"),
    ]
    assert watched.detect_events(poll(events=after)) == []


def test_an_error_that_was_there_is_not_told_again_by_a_later_event() -> None:
    watched = watch("failure")
    watched.detect_events(poll(events=[event(2, "Old"), event(1)]))
    assert watched.detect_events(poll(events=[event(3, "Old"), event(2, "Old"), event(1)])) == []


def test_a_program_that_compiles_is_a_change() -> None:
    watched = watch("program_change")
    watched.detect_events(poll())
    assert watched.detect_events(poll(program_version=2, version=3, program_status="Pending")) == []
    assert watched.detect_events(poll(program_version=2, version=3, program_status="SqlError")) == []
    (told,) = watched.detect_events(poll(program_version=3, version=4))
    assert (told["program_version"], told["version"]) == (3, 4)


def test_another_pipeline_of_the_name_begins_anew() -> None:
    watched = watch("program_change", "checkpoint")
    watched.detect_events(poll(program_version=9, **storage(THIRD)))
    assert watched.detect_events(poll(identity="two", **storage())) == []
    assert [event["event"] for event in watched.detect_events(poll(identity="two", program_version=2, **storage(SECOND)))] == [
        "checkpoint",
        "program_change",
    ]


def test_only_what_is_needed_is_asked_and_told() -> None:
    assert not watch("checkpoint", "sync", "program_change").needs_stats
    assert watch("idle").needs_stats
    watched = watch("sync")
    watched.detect_events(poll())
    assert watched.detect_events(poll(program_version=7, **storage(FIRST))) == []


def test_events_are_asked_for_when_a_status_has_changed() -> None:
    now = poll(deployment_status="Running", deployment_resources_status_since="t1", deployment_error=None, events=[event(1)])
    assert not watch("checkpoint", "idle").needs_events(now.descriptor)
    watched = watch("failure")
    assert watched.needs_events(now.descriptor)
    watched.detect_events(now)
    assert not watched.needs_events({**now.descriptor, "program_version": 9, "storage_status_details": {"checkpoints": []}})
    for change in ({"deployment_error": {"error_code": "X"}}, {"deployment_resources_status_since": "t2"}):
        assert watched.needs_events({**now.descriptor, **change})


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="known: checkpoint, sync, idle, failure, program_change"):
        PipelineEventKind.of("checkpoints")
