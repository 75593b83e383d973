from __future__ import annotations

from typing import Any

import pytest

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
from airflow_pipelines.contract.change_text import change_markdown, change_text, changes_of, operator_effect
from airflow_pipelines.contract.descriptors import PendingChange

DIFF: dict[str, Any] = {
    "program_diff": {
        "modified_views": ["alerts"],
        "added_operators": ["enrich"],
        "removed_operators": ["old"],
        "modified_operators": ["score"],
    },
    "program_diff_error": None,
}
PLAN = ChangePlan(
    operators=(
        OperatorChange("enrich", "enrich", OperatorChangeKind.ADDED),
        OperatorChange("score", "A | B", OperatorChangeKind.MODIFIED, ("total",), ("last",), "its type differs", 1200, 3 << 20),
        OperatorChange("old", "Old", OperatorChangeKind.REMOVED, (), ("count",), "", 1, 80),
        OperatorChange("join", "", OperatorChangeKind.STARTED_ANEW, (), ("left", "right"), "the relation orders changed"),
    ),
    files=(FileChange("fraud.py", FileChangeKind.MODIFIED, "-limit = 100\n+limit = 250"),),
    refusals=(Refusal("BootstrapNotAllowed", "the keys of score were text"),),
)
CHANGE = PendingChange(DIFF, plan=PLAN)


def test_the_text_has_operators_their_state_and_the_lines_that_differ() -> None:
    assert change_text(CHANGE).splitlines() == [
        "~ view alerts",
        "+ operator enrich",
        "~ operator score",
        "- operator old",
        "operator enrich: is new and starts without state",
        "operator score (A | B): keeps total; DROPS last (1200 keys, 3.0 MiB), because its type differs",
        "operator old (Old): DROPS count (1 key, 80 bytes)",
        "operator join: starts anew; DROPS left, right, because the relation orders changed",
        "refused: the keys of score were text",
        "file fraud.py (modified):",
        "-limit = 100",
        "+limit = 250",
    ]


def test_markdown_has_the_same_and_stays_in_form() -> None:
    markdown = change_markdown(CHANGE)
    assert "| modified | operator | `score` | goes on with its state, where that still fits |" in markdown
    assert "| `score` | A \\| B | modified | keeps total; DROPS last (1200 keys, 3.0 MiB), because its type differs |" in markdown
    assert "| `join` |  | started anew | starts anew; DROPS left, right, because the relation orders changed |" in markdown
    assert "```diff\n-limit = 100\n+limit = 250\n```" in markdown
    assert "- **refused**: the keys of score were text" in markdown
    fenced = PendingChange(DIFF, plan=ChangePlan(files=(FileChange("a.py", FileChangeKind.ADDED, "+'''```'''"),)))
    assert "````diff\n+'''```'''\n````" in change_markdown(fenced)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (OperatorChange("a", "", OperatorChangeKind.MODIFIED), "has no state"),
        (OperatorChange("a", "", OperatorChangeKind.MODIFIED, ("x", "y"), keys=0, bytes=0), "keeps x, y (0 keys, 0 bytes)"),
        (OperatorChange("a", "", OperatorChangeKind.REMOVED, dropped_states=("x",)), "DROPS x"),
    ],
)
def test_what_becomes_of_an_operators_state(change: OperatorChange, expected: str) -> None:
    assert operator_effect(change) == expected


def test_a_diff_of_sql_only_has_no_operators() -> None:
    assert list(changes_of({"program_diff": {"added_views": ["v"]}, "added_input_connectors": ["t.c"]})) == [
        ("added", "view", "v"),
        ("added", "input connector", "t.c"),
    ]


def modified(saved: str, new: str) -> RelationChange:
    return RelationChange(RelationKind.VIEW, RelationChangeKind.MODIFIED, Declaration(saved, "a"), Declaration(new, "b"))


def test_the_sql_of_both_sides_is_shown() -> None:
    view = modified("create view v as\nselect 1", "-- ```\nselect 2")
    # Changed by what it reads: its own statement is as it was.
    reader = modified("select * from v", "select * from v")
    gone = RelationChange(RelationKind.TABLE, RelationChangeKind.REMOVED, Declaration("x" * 9000, "a"))
    evaluated = {"v": ViewEvaluation({"t": 10}, 1, 0.2), "w": ViewEvaluation({"v": 5}, 1, 0.3)}
    change = PendingChange({}, plan=ChangePlan(relations={"v": view, "w": reader, "t": gone}, evaluated=evaluated))
    lines = change_text(change).splitlines()
    now, then = lines.index("view v (modified), now:"), lines.index("view v (modified), then:")
    assert lines[now + 1 : now + 3] == ["    create view v as", "    select 1"]
    assert lines[then + 1 : then + 3] == ["    -- ```", "    select 2"]
    assert lines[lines.index("view w (modified), the statement is the same:") + 1] == "    select * from v"
    assert "    ... and 1000 more characters" in lines
    markdown = change_markdown(change)
    assert "view `v` (modified), now:\n\n```sql\ncreate view v as\nselect 1\n```" in markdown
    assert "view `v` (modified), then:\n\n````sql\n-- ```\nselect 2\n````" in markdown
    assert "| `v` | 10 | 0.2 |\n| `w` | 5 | 0.3 |\n| all | 15 | 0.5 |" in markdown
