"""A change of a pipeline's program in words, for the log, the terminal, and the person who decides about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from airflow_pipelines.common.readable import readable_size
from airflow_pipelines.contract.change_plan import Declaration, OperatorChange, OperatorChangeKind, RelationChange
from airflow_pipelines.contract.descriptors import PendingChange

_MARKS: Final = {"added": "+", "modified": "~", "removed": "-"}
_EFFECTS: Final = {
    ("added", "table"): "starts empty, its connectors start from the beginning",
    ("modified", "table"): "is emptied, its connectors start from the beginning",
    ("removed", "table"): "is dropped with its rows",
    ("added", "view"): "is computed from the tables' rows",
    ("modified", "view"): "is computed anew from the tables' rows; its full contents go to its outputs again",
    ("removed", "view"): "is dropped",
    ("added", "operator"): "starts without state",
    ("modified", "operator"): "goes on with its state, where that still fits",
    ("removed", "operator"): "is dropped with its state",
    ("added", "input connector"): "starts from the beginning",
    ("modified", "input connector"): "starts from the beginning; rows it delivered before stay",
    ("removed", "input connector"): "ends; rows it delivered stay",
    ("added", "output connector"): "gets changes from now on, or a new view's full contents",
    ("modified", "output connector"): "gets changes from now on, or a changed view's full contents",
    ("removed", "output connector"): "ends",
}

_ENTRIES: Final = (
    "Entries are what the storage has to read or to drop, not rows: a row that has changed has several until they are merged, and"
    " what a view keeps besides its contents is counted, too."
)

_LONGEST_SQL: Final = 8000
"""The maximum number of characters of a statement that are shown."""


def changes_of(diff: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the single changes of a diff.

    :param diff: the approval diff as the service sends it
    :yields: the action (added, modified, removed), the kind of the changed object, and its name
    """
    program = diff.get("program_diff") or {}
    for kind, plural, lists in (
        ("table", "tables", program),
        ("view", "views", program),
        ("operator", "operators", program),
        ("input connector", "input_connectors", diff),
        ("output connector", "output_connectors", diff),
    ):
        for what in _MARKS:
            for name in lists.get(f"{what}_{plural}") or ():
                yield what, kind, name


def diff_text(diff: Mapping[str, Any]) -> str:
    """Return a diff as lines ``+ view totals``, with ``+`` for added, ``~`` for modified and ``-`` for removed."""
    lines = [f"{_MARKS[what]} {kind} {name}" for what, kind, name in changes_of(diff)]
    if diff.get("program_diff_error"):
        lines.append(f"The programs could not be compared: {diff['program_diff_error']}")
    return "\n".join(lines) or "no changes"


def diff_markdown(diff: Mapping[str, Any]) -> str:
    """Return a diff as a Markdown table with the effect of each change, followed by the same as a ``diff`` block."""
    rows = [f"| {what} | {kind} | `{name}` | {_EFFECTS[what, kind]} |" for what, kind, name in changes_of(diff)]
    table = "\n".join(["| change | what | name | effect |", "| --- | --- | --- | --- |", *rows])
    # Renderers of diff blocks know + and - only.
    block = "\n".join(f"! {line[2:]}" if line.startswith("~ ") else line for line in diff_text(diff).splitlines())
    return f"{table}\n\n```diff\n{block}\n```"


def change_text(change: PendingChange) -> str:
    """Return a change as text.

    It has the diff, the programs, the unchanged views that are evaluated anew, the SQL of both sides, and the effects on views,
    operators, their state, and the files of the program.
    """
    lines = [diff_text(change.diff), *(f"program {line}" for line in program_lines(change))]
    lines += [f"evaluated anew: view {view} ({reason})" for view, reason in sorted(change.views_evaluated_anew.items())]
    if change.plan is not None:
        for name, relation in sorted(change.plan.relations.items()):
            for label, sql in _statements(relation):
                lines += [f"{relation.kind.value} {name} ({relation.change.value}), {label}:", *_indent(sql)]
        lines += [f"operator {_operator_name(each)}: {operator_effect(each)}" for each in change.plan.operators]
        lines += [f"evaluated from {_entries(view.rows)}: view {name}" for name, view in sorted(change.plan.evaluated.items())]
        lines += [f"dropped with {_entries(count)}: {name}" for name, count in sorted(change.plan.dropped.items())]
        lines += [f"refused: {refusal.message}" for refusal in change.plan.refusals]
        if change.plan.evaluated:
            range_ = _format_range(change.plan.seconds, change.plan.seconds_at_most)
            lines.append(f"evaluating takes about {range_} s, besides the restart")
        lines += [f"file {file.path} ({file.change.value}):\n{file.diff}" for file in change.plan.files]
    return "\n".join(lines)


def change_markdown(change: PendingChange) -> str:
    """Return a change in Markdown, with the same parts as :func:`change_text`."""
    parts = [diff_markdown(change.diff)]
    if change.views_evaluated_anew:
        rows = [f"| `{view}` | {reason} |" for view, reason in sorted(change.views_evaluated_anew.items())]
        head = "These views have not changed and are evaluated anew; no output and no reader gets anything of it:"
        parts.append("\n".join([head, "", "| view | reason |", "| --- | --- |", *rows]))
    if change.plan is not None:
        for name, relation in sorted(change.plan.relations.items()):
            parts += [
                f"{relation.kind.value} `{name}` ({relation.change.value}), {label}:\n\n{_fence(sql, 'sql')}"
                for label, sql in _statements(relation)
            ]
    if change.plan is not None and change.plan.operators:
        rows = [
            f"| `{each.uid}` | {_escape(each.name)} | {each.change.value.replace('_', ' ')} | {_escape(operator_effect(each))} |"
            for each in change.plan.operators
        ]
        parts.append("\n".join(["| operator | name | change | state |", "| --- | --- | --- | --- |", *rows]))
    if change.plan is not None and change.plan.evaluated:
        rows = [
            f"| `{name}` | {view.rows} | {_format_range(view.seconds, view.seconds_at_most)} |"
            for name, view in sorted(change.plan.evaluated.items())
        ]
        total = f"| all | {change.plan.rows} | {_format_range(change.plan.seconds, change.plan.seconds_at_most)} |"
        parts.append(
            "\n".join(["| view to evaluate | entries of the storage read | seconds, about |", "| --- | --- | --- |", *rows, total])
        )
    if change.plan is not None and change.plan.dropped:
        rows = [f"| `{name}` | {count} |" for name, count in sorted(change.plan.dropped.items())]
        parts.append("\n".join(["| dropped | entries of the storage |", "| --- | --- |", *rows]))
    if change.plan is not None and (change.plan.evaluated or change.plan.dropped):
        parts.append(_ENTRIES)
    if change.plan is not None and change.plan.refusals:
        parts.append("\n".join(f"- **refused**: {refusal.message}" for refusal in change.plan.refusals))
    if change.plan is not None:
        parts += [_fence(file.diff, "diff") for file in change.plan.files]
    if change.programs:
        parts.append("\n".join(f"- program {line}" for line in program_lines(change)))
    return "\n\n".join(parts)


def operator_effect(operator: OperatorChange) -> str:
    """Describe the effect of a change on the state of an operator.

    :param operator: the operator
    """
    if operator.change is OperatorChangeKind.ADDED:
        return "is new and starts without state"
    kept, dropped = ", ".join(operator.kept_states), ", ".join(operator.dropped_states)
    effects = []
    if operator.change is OperatorChangeKind.STARTED_ANEW:
        effects.append("starts anew")
    if kept:
        effects.append(f"keeps {kept}")
    if dropped:
        effects.append(f"DROPS {dropped}")
    if not kept and not dropped:
        effects.append("has no state" if operator.is_size_known else "goes on")
    because = f", because {operator.reason}" if operator.reason else ""
    return "; ".join(effects) + _size(operator) + because


def program_lines(change: PendingChange) -> Iterator[str]:
    """Yield a line for each of the two programs of a change: version and hash."""
    for which in ("saved", "new"):
        program = change.programs.get(which)
        if program:
            version = f"version {program['version']}, " if "version" in program else ""
            yield f"{which}: {version}hash {program['hash']}"


def _operator_name(operator: OperatorChange) -> str:
    return operator.uid if operator.name in ("", operator.uid) else f"{operator.uid} ({operator.name})"


def _size(operator: OperatorChange) -> str:
    """Return the size of an operator's state, in parentheses."""
    parts = []
    if operator.keys is not None:
        parts.append(f"{operator.keys} key{'' if operator.keys == 1 else 's'}")
    if operator.bytes is not None:
        parts.append(readable_size(operator.bytes))
    if not operator.is_size_known:
        parts.append("its size is not known before the first checkpoint")
    return f" ({', '.join(parts)})" if parts else ""


def _entries(count: int) -> str:
    return f"{count} entr{'y' if count == 1 else 'ies'} in storage"


def _escape(text: str) -> str:
    """Escape a text for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def _statements(relation: RelationChange) -> Iterator[tuple[str, str]]:
    """Yield the statements of a relation in the two programs, each with a label; only one if both are the same text."""
    if relation.saved is not None and relation.new is not None and relation.saved.sql == relation.new.sql:
        yield "the statement is the same", _shorten(relation.saved)
        return
    if relation.saved is not None:
        yield "now", _shorten(relation.saved)
    if relation.new is not None:
        yield "then", _shorten(relation.new)


def _shorten(declaration: Declaration) -> str:
    sql = declaration.sql.strip()
    left = len(sql) - _LONGEST_SQL
    return sql if left <= 0 else f"{sql[:_LONGEST_SQL]}\n... and {left} more characters"


def _indent(text: str) -> Iterator[str]:
    return (f"    {line}" for line in text.splitlines())


def _fence(text: str, language: str) -> str:
    """Return a text as a fenced block of Markdown, with a fence longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _format_range(least: float, most: float) -> str:
    """Return a range of seconds with two digits, since no estimate is more precise."""
    low, high = (f"{float(f'{seconds:.2g}'):g}" for seconds in (least, max(least, most)))
    return low if high == low else f"{low} to {high}"
