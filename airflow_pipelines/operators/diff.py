"""The change that waits for approval, for people and for comparison."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from airflow_pipelines.contract.descriptors import PendingChange

_MARKS = {"added": "+", "modified": "~", "removed": "-"}
_EFFECTS = {
    ("added", "table"): "starts empty, its connectors start from the beginning",
    ("modified", "table"): "is emptied, its connectors start from the beginning",
    ("removed", "table"): "is dropped with its rows",
    ("added", "view"): "is computed from the tables' rows",
    ("modified", "view"): "is computed anew from the tables' rows; its full contents go to its outputs again",
    ("removed", "view"): "is dropped",
    ("added", "input connector"): "starts from the beginning",
    ("modified", "input connector"): "starts from the beginning; rows it delivered before stay",
    ("removed", "input connector"): "ends; rows it delivered stay",
    ("added", "output connector"): "gets changes from now on, or a new view's full contents",
    ("modified", "output connector"): "gets changes from now on, or a changed view's full contents",
    ("removed", "output connector"): "ends",
}


def changes_of(diff: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The single changes of a diff.

    :param diff: the approval diff as the service sends it
    :yields: what happens (added, modified, removed), to what kind of thing, and its name
    """
    program = diff.get("program_diff") or {}
    for kind, plural, lists in (
        ("table", "tables", program),
        ("view", "views", program),
        ("input connector", "input_connectors", diff),
        ("output connector", "output_connectors", diff),
    ):
        for what in _MARKS:
            for name in lists.get(f"{what}_{plural}") or ():
                yield what, kind, name


def diff_text(diff: Mapping[str, Any]) -> str:
    """A diff as lines ``+ view totals``, with ``+`` for added, ``~`` for modified and ``-`` for removed."""
    lines = [f"{_MARKS[what]} {kind} {name}" for what, kind, name in changes_of(diff)]
    if diff.get("program_diff_error"):
        lines.append(f"The programs could not be compared: {diff['program_diff_error']}")
    return "\n".join(lines) or "no changes"


def diff_markdown(diff: Mapping[str, Any]) -> str:
    """A diff as a Markdown table with the effect of each change, and the same as a ``diff`` block."""
    rows = [f"| {what} | {kind} | `{name}` | {_EFFECTS[what, kind]} |" for what, kind, name in changes_of(diff)]
    table = "\n".join(["| change | what | name | effect |", "| --- | --- | --- | --- |", *rows])
    # Renderers of diff blocks know + and - only.
    block = "\n".join(f"! {line[2:]}" if line.startswith("~ ") else line for line in diff_text(diff).splitlines())
    return f"{table}\n\n```diff\n{block}\n```"


def change_text(change: PendingChange) -> str:
    """A change as text: its diff, its programs, and the unchanged views that are evaluated anew."""
    lines = [diff_text(change.diff), *(f"program {line}" for line in _programs(change))]
    lines += [f"evaluated anew: view {view} ({reason})" for view, reason in sorted(change.views_evaluated_anew.items())]
    if change.plan is not None:
        lines += [f"evaluated from {view.rows} stored rows: view {name}" for name, view in sorted(change.plan.evaluated.items())]
        lines += [f"dropped with {rows} stored rows: {name}" for name, rows in sorted(change.plan.dropped.items())]
        lines.append(f"about {change.plan.seconds:g} s")
    return "\n".join(lines)


def change_markdown(change: PendingChange) -> str:
    """A change in Markdown: its diff, its programs, and the unchanged views that are evaluated anew."""
    parts = [diff_markdown(change.diff)]
    if change.views_evaluated_anew:
        rows = [f"| `{view}` | {reason} |" for view, reason in sorted(change.views_evaluated_anew.items())]
        head = "These views have not changed and are evaluated anew; no output and no reader gets anything of it:"
        parts.append("\n".join([head, "", "| view | reason |", "| --- | --- |", *rows]))
    if change.plan is not None and change.plan.evaluated:
        rows = [f"| `{name}` | {view.rows} | {view.seconds:g} |" for name, view in sorted(change.plan.evaluated.items())]
        parts.append("\n".join(["| view to evaluate | stored rows read | seconds, about |", "| --- | --- | --- |", *rows]))
    if change.plan is not None and change.plan.dropped:
        rows = [f"| `{name}` | {count} |" for name, count in sorted(change.plan.dropped.items())]
        parts.append("\n".join(["| dropped | stored rows |", "| --- | --- |", *rows]))
    if change.programs:
        parts.append("\n".join(f"- program {line}" for line in _programs(change)))
    return "\n\n".join(parts)


def change_xcom(change: PendingChange | None) -> dict[str, Any]:
    """What an XCom holds of a change; None for each part when nothing waits."""
    if change is None:
        return {"diff": None, "programs": None, "views_evaluated_anew": None}
    return {"diff": change.diff, "programs": change.programs, "views_evaluated_anew": change.views_evaluated_anew}


def change_fingerprint(change: PendingChange) -> str:
    """A short text that is the same for the same change of the same programs only."""
    return hashlib.sha256(json.dumps(change_xcom(change), sort_keys=True).encode()).hexdigest()[:16]


def _programs(change: PendingChange) -> Iterator[str]:
    for which in ("saved", "new"):
        program = change.programs.get(which)
        if program:
            version = f"version {program['version']}, " if "version" in program else ""
            yield f"{which}: {version}hash {program['hash']}"
