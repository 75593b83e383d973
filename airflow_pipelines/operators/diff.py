"""The change that waits for approval, for people and for comparison."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

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

    Args:
        diff: the approval diff as the service sends it.

    Yields:
        What happens (added, modified, removed), to what kind of thing, and its name.
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


def diff_fingerprint(diff: Mapping[str, Any]) -> str:
    """A short text that is the same for the same changes only."""
    return hashlib.sha256(json.dumps(diff, sort_keys=True).encode()).hexdigest()[:16]
