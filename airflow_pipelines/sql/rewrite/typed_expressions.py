"""The rewrite of expressions whose meaning depends on the types of their operands: division, and TYPEOF of VARIANTs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.probe import types_in
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker, mentions
from airflow_pipelines.sql.syntax.dialect import OPERAND, parse_query, parse_with_operands
from airflow_pipelines.sql.syntax.edits import Edit, Edited
from airflow_pipelines.sql.values.float_division import quotient

_FLOATING = frozenset({"double", "float"})
_NEVER_ZERO = frozenset({"nullif", "exp"})
_TYPE_OF_VARIANT = (
    "COALESCE(CASE REGEXP_EXTRACT(SCHEMA_OF_VARIANT({0}), '^[A-Z_]+', 0) WHEN 'VOID' THEN 'VARIANT' WHEN 'OBJECT' THEN 'MAP' "
    "WHEN 'STRING' THEN 'VARCHAR' WHEN 'TIMESTAMP_NTZ' THEN 'TIMESTAMP' WHEN 'FLOAT' THEN 'REAL' WHEN 'BINARY' THEN 'VARBINARY' "
    "ELSE REGEXP_EXTRACT(SCHEMA_OF_VARIANT({0}), '^[A-Z_]+', 0) END, 'NULL')"
)


def typed_expressions(query: Edited, analyzer: Analyzer) -> Edited:
    """Rewrite divisions of floating-point numbers and ``TYPEOF(variant)``.

    An expression whose type Spark cannot tell, such as the parameter of a lambda function or a column of an outer query, keeps
    Spark's meaning.

    :param query: Spark SQL that Spark accepts
    :param analyzer: the analyzer, which knows the relations that the query reads
    """
    return _types_of_variants(_divisions(query, analyzer), analyzer)


@dataclass(frozen=True, slots=True)
class _Division:
    """A division within a text: the SELECT that it belongs to, and the offsets of its operands (ends exclusive)."""

    select: exp.Select
    left: tuple[int, int]
    right: tuple[int, int]


def _divisions(query: Edited, analyzer: Analyzer) -> Edited:
    if "/" not in query.text:
        return query
    text = query.text
    divisions = [division for division in _find_divisions(text) if _may_fail(text[slice(*division.right)])]
    floating = [
        division for division, is_floating in zip(divisions, _are_floating(divisions, text, analyzer), strict=True) if is_floating
    ]
    return query.edit(_edits(text, floating, 0, len(text)))


def _find_divisions(text: str) -> Iterator[_Division]:
    for node in parse_with_operands(text).find_all(exp.Div):
        select, left, right = node.find_ancestor(exp.Select), _place(node.this), _place(node.expression)
        if select is not None and left is not None and right is not None:
            yield _Division(select, left, right)


def _place(operand: exp.Expr) -> tuple[int, int] | None:
    """Return the offsets of an operand. A chain, such as ``a * b`` in ``a * b / c``, extends from its first part to its last."""
    own = operand.meta.get(OPERAND)
    if own is not None or not isinstance(operand, exp.Binary):
        return own
    first, last = _place(operand.left), _place(operand.right)
    return (first[0], last[1]) if first is not None and last is not None else None


def _may_fail(divisor: str) -> bool:
    """Return True if a divisor may be zero, as far as its text shows."""
    walker = TokenWalker(divisor)
    try:
        return not float(divisor)
    except ValueError:
        return not (walker.name(0).lower() in _NEVER_ZERO and walker.closing(1) == len(walker.tokens) - 1)


def _are_floating(divisions: Sequence[_Division], text: str, analyzer: Analyzer) -> list[bool]:
    """Return for each division True if an operand is a floating-point number."""
    answers: dict[int, bool] = {}
    for select in {id(division.select): division.select for division in divisions}.values():
        own = [at for at, division in enumerate(divisions) if division.select is select]
        sides = [text[slice(*side)] for at in own for side in (divisions[at].left, divisions[at].right)]
        kinds = types_in(select, sides, analyzer)
        # One expression that Spark refuses, such as an aggregate beside a column, hides the types of the others.
        known = [(types_in(select, [side], analyzer) or ("",))[0] for side in sides] if kinds is None else kinds
        # A divided interval is an interval.
        answers |= {
            at: not _FLOATING.isdisjoint(known[2 * place : 2 * place + 2]) and not known[2 * place].startswith("interval")
            for place, at in enumerate(own)
        }
    return [answers[at] for at in range(len(divisions))]


def _edits(text: str, divisions: Sequence[_Division], start: int, end: int) -> list[Edit]:
    """Return the edits of the outermost divisions between two offsets."""
    within = [division for division in divisions if start <= division.left[0] and division.right[1] <= end]
    edits = []
    for division in within:
        first, last = division.left[0], division.right[1]
        if not any(other.left[0] <= first and last <= other.right[1] for other in within if other is not division):
            inner = [other for other in within if other is not division]
            sides = [_edit_part(text, inner, *side) for side in (division.left, division.right)]
            edits.append(Edit(first, last, quotient(*sides)))
    return edits


def _edit_part(text: str, divisions: Sequence[_Division], start: int, end: int) -> str:
    edits = [Edit(edit.start - start, edit.end - start, edit.text) for edit in _edits(text, divisions, start, end)]
    return Edited(text[start:end]).edit(edits).text


def _types_of_variants(query: Edited, analyzer: Analyzer) -> Edited:
    if not mentions(query.text, "typeof"):
        return query
    walker = TokenWalker(query.text)
    calls = [call for call in walker.calls() if call.name == "typeof" and len(call.arguments) == 1]
    selects: dict[int, exp.Select] = {}
    for node in parse_query(query.text).walk() if calls else ():
        if "start" in node.meta and (select := node.find_ancestor(exp.Select)) is not None:
            selects.setdefault(node.meta["start"], select)
    edits = []
    for call in calls:
        value = walker.piece(*call.arguments[0])
        select_of_call = next((selects[at] for at in sorted(selects) if call.start < at < call.end), None)
        if select_of_call is not None and types_in(select_of_call, [value], analyzer) == ("variant",):
            edits.append(Edit(call.start, call.end, _TYPE_OF_VARIANT.format(value)))
    return query.edit(edits)
