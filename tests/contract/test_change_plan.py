from __future__ import annotations

import json

from airflow_pipelines.contract.change_plan import (
    ChangePlan,
    Declaration,
    FileChange,
    FileChangeKind,
    OperatorChange,
    OperatorChangeKind,
    Refusal,
    RelationChange,
    RelationChangeKind,
    RelationKind,
    ViewEvaluation,
)

PLAN = ChangePlan(
    relations={"v": RelationChange(RelationKind.VIEW, RelationChangeKind.ADDED, None, Declaration("create view v", "h"))},
    evaluated={"v": ViewEvaluation({"t": 3}, 1, 0.25)},
    dropped={"w": 4},
    refusals=(Refusal("BootstrapNotAllowed", "no"),),
    operators=(
        OperatorChange("score", "Score", OperatorChangeKind.MODIFIED, ("total",), ("last",), "its type changed", 12, 3456),
        OperatorChange("alerts", "alerts", OperatorChangeKind.ADDED),
    ),
    files=(FileChange("fraud.py", FileChangeKind.MODIFIED, "-a\n+b"),),
)


def test_a_plan_survives_the_wire() -> None:
    wire = json.loads(json.dumps(PLAN.to_wire()))
    assert ChangePlan.from_dict(wire) == PLAN
    assert wire["operators"][0] == {
        "uid": "score",
        "name": "Score",
        "change": "modified",
        "kept_states": ["total"],
        "dropped_states": ["last"],
        "reason": "its type changed",
        "keys": 12,
        "bytes": 3456,
        "is_size_known": True,
    }
    assert wire["files"] == [{"path": "fraud.py", "change": "modified", "diff": "-a\n+b"}]


def test_a_plan_of_a_release_without_stream_programs_is_read() -> None:
    wire = PLAN.to_wire()
    del wire["operators"], wire["files"]
    read = ChangePlan.from_dict(wire)
    assert (read.operators, read.files, read.evaluated) == ((), (), PLAN.evaluated)
