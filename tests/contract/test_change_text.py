from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.contract.change_plan import (
    ChangePlan,
    FileChange,
    FileChangeKind,
    OperatorChange,
    OperatorChangeKind,
    Refusal,
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
        "about 0 s",
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
