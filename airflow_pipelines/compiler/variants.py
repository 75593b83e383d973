"""The rewriting of fields and elements of VARIANT values, ``v['k']``, ``v[1]`` and ``v.k``, as calls of VARIANT_GET.

Only Spark's analyzer knows which expressions are VARIANTs. It refuses these accesses one by one, and each is rewritten where it is
refused. Other constructs are rewritten in the same way: casts whose meaning depends on types, fields of rows by their position,
comparisons of MAPs, UNNEST of rows into their fields, tables that a column of a subquery hides, and aggregates of HAVING.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.compiler.refusal_reasons import explain_refusal
from airflow_pipelines.compiler.refused_casts import repaired_cast
from airflow_pipelines.engine.spark.analysis import Analysis, Analyzed, QueryRefused
from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.having_aggregates import select_having_aggregates
from airflow_pipelines.sql.rewrite.hidden_tables import hidden_table_edits
from airflow_pipelines.sql.rewrite.map_comparisons import compare_maps
from airflow_pipelines.sql.rewrite.ordinality import with_columns_of
from airflow_pipelines.sql.rewrite.row_fields import name_row_fields
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit, Edited
from airflow_pipelines.sql.values.json_path import path_literal, path_step

_CONDITION = "INVALID_EXTRACT_BASE_FIELD_TYPE"
_FIELD_BY_PLACE = "INVALID_EXTRACT_FIELD_TYPE"
"""Spark's condition for a field of a row that is not given by its name."""
_ALIASES = "NUM_TABLE_VALUE_ALIASES_MISMATCH"
"""Spark's condition for a generator with more or fewer columns than names."""
_FORGOTTEN = "MISSING_ATTRIBUTES"
"""Spark's condition for columns that it has lost itself, as it does with aggregates of HAVING."""
_WRONG_TYPE = "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"
_NO_ORDER = "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"
_TYPE = re.compile(r'has the type "(?P<kind>[^"]+)"')
_UNORDERED = re.compile(r'The `(?P<function>.+?)` does not support ordering on type "(?P<kind>[^"]+)"')
_NAME_IN_BRACKETS = re.compile(r"^\(+([\w.]+)\)+$")
_BASE = re.compile(r'from "(?P<base>.*?)"\. ')


def analyze_variants(query: Edited, analysis: Analysis, analyzer: Analyzer) -> tuple[Edited, Analyzed]:
    """Analyze a query, and rewrite type-dependent constructs and hidden tables until Spark accepts it.

    :param query: the query in Spark's syntax
    :param analysis: the analysis of a session that knows the relations that the query reads
    :param analyzer: the analyzer, which knows them too
    :returns: the query as Spark accepts it, and the result of its analysis
    :raises QueryRefused: if Spark refuses it for other reasons, with a place in ``query.text``
    :raises SyntaxFailure: if a field of a row is ambiguous or unknown, with a place in ``query.text``
    """
    edited, outcome = query, _analyze(query.text, analysis)
    while isinstance(outcome, QueryRefused):
        better = _improve(edited, outcome, analysis, analyzer)
        if better is None:
            raise QueryRefused(*edited.origin(outcome.start, outcome.end), explain_refusal(outcome), outcome.condition) from outcome
        edited, outcome = better
    return edited, outcome


def _analyze(text: str, analysis: Analysis) -> Analyzed | QueryRefused:
    try:
        return analysis.analyze(text)
    except QueryRefused as refused:
        return refused


def _improve(
    edited: Edited, refused: QueryRefused, analysis: Analysis, analyzer: Analyzer
) -> tuple[Edited, Analyzed | QueryRefused] | None:
    """Return the query with one more construct rewritten, and its analysis, or None if Spark refuses it for another reason."""
    cast = repaired_cast(edited, refused)
    if cast is not None:
        return cast, _analyze(cast.text, analysis)
    everywhere = _rewrite_everywhere(edited, refused.condition or "", analyzer)
    if everywhere is not edited:
        return everywhere, _analyze(everywhere.text, analysis)
    by_type = _find_edits_by_type(edited, refused)
    if by_type:
        after = edited.edit(by_type)
        return after, _analyze(after.text, analysis)
    if refused.condition == _ALIASES:
        return _use_inline(edited, refused, analysis)
    match = _BASE.search(refused.message)
    if refused.condition != _CONDITION or match is None:
        return None
    hidden = hidden_table_edits(edited.text, match["base"].rsplit(".", 1)[-1].strip("`"))
    if hidden:
        after = edited.edit(hidden)
        return after, _analyze(after.text, analysis)
    if '"VARIANT"' not in refused.message:
        return None
    walker, base = TokenWalker(edited.text), match["base"]
    at = next((at for at, token in enumerate(walker.tokens) if token.start == refused.start), None)
    whole = refused.start == 0 and refused.end >= len(edited.text)
    dotted = None if at is None or whole else _rewrite_dotted(walker, at, base.rsplit(".", 1)[-1].strip("`"))
    if dotted is not None:
        after = edited.edit([dotted])
        return after, _analyze(after.text, analysis)
    # Spark reports the text of the base, not its place. So brackets behind such a text are tried first, together, then each alone.
    brackets = _select_innermost(chain(_find_brackets(walker), _fields(walker)))
    alike = [edit for value, edit in brackets if _is_alike(value, base)]
    for edits in [alike, *([edit] for edit in alike), *([edit] for _, edit in brackets)]:
        if edits:
            after = edited.edit(edits)
            outcome = _analyze(after.text, analysis)
            if not (isinstance(outcome, QueryRefused) and _is_wrong(outcome)):
                return after, outcome
    return None


def _rewrite_everywhere(edited: Edited, condition: str, analyzer: Analyzer) -> Edited:
    """Return the query with all constructs rewritten for which Spark has one condition, wherever they are."""
    if condition == _FIELD_BY_PLACE:
        return name_row_fields(edited, analyzer)
    return select_having_aggregates(edited) if condition.startswith(_FORGOTTEN) else edited


def _find_edits_by_type(edited: Edited, refused: QueryRefused) -> list[Edit]:
    """Return the edits for constructs that depend on the type that Spark names.

    They are positions of rows and entries, and comparisons of MAPs.
    """
    match = (_UNORDERED if refused.condition == _NO_ORDER else _TYPE).search(refused.message)
    if match is None or refused.condition not in {_NO_ORDER, _WRONG_TYPE}:
        return []
    if refused.condition == _NO_ORDER:
        return compare_maps(match["kind"], match["function"], edited.text, refused.start, refused.end)
    edit = with_columns_of(match["kind"], edited.text, refused.start, refused.end)
    if isinstance(edit, str):
        raise QueryRefused(*edited.origin(refused.start, refused.end), edit, refused.condition)
    return [] if edit is None else [edit]


def _use_inline(edited: Edited, refused: QueryRefused, analysis: Analysis) -> tuple[Edited, Analyzed | QueryRefused] | None:
    """Return the query with INLINE for an EXPLODE with a list of columns, so that the fields of rows become columns."""
    walker = TokenWalker(edited.text)
    calls = [call for call in walker.calls() if call.name == "EXPLODE" and _names_columns(walker, call.close + 1)]
    all_of_them = [Edit(walker.start(call.at), walker.end(call.at), "INLINE") for call in calls]
    for edits in [all_of_them, *([edit] for edit in all_of_them)]:
        if edits:
            after = edited.edit(edits)
            outcome = _analyze(after.text, analysis)
            if not (isinstance(outcome, QueryRefused) and outcome.message == refused.message) and not _wants_rows(outcome):
                return after, outcome
    return None


def _names_columns(walker: TokenWalker, behind: int) -> bool:
    """Return True if a relation that ends before a token is given a name with two or more columns."""
    opening = behind + (2 if walker.word(behind) == "as" else 1)
    closing = walker.closing(opening) if walker.word(opening) == "(" else None
    return closing is not None and closing > opening + 2


def _wants_rows(outcome: Analyzed | QueryRefused) -> bool:
    return isinstance(outcome, QueryRefused) and "inline(" in outcome.message.lower()


def _is_wrong(refused: QueryRefused) -> bool:
    """Return True if Spark refuses VARIANT_GET itself, because its argument is not a VARIANT."""
    return 'requires the "VARIANT" type' in refused.message and "variant_get" in refused.message.lower()


def _fields(walker: TokenWalker) -> Iterator[tuple[str, Edit]]:
    """Yield every ``value.key`` whose value is a call or ends with brackets, with the text of the value."""
    for at in range(1, len(walker.tokens) - 1):
        first = walker.operand(at - 1) if walker.word(at) == "." and walker.word(at - 1) in {")", "]"} else None
        if first is not None:
            value = walker.piece(walker.start(first), walker.end(at - 1))
            step = path_literal(path_step(walker.tokens[at + 1].text))
            yield value, Edit(walker.start(first), walker.end(at + 1), f"VARIANT_GET({value}, {step}, 'variant')")


def _find_brackets(walker: TokenWalker) -> Iterator[tuple[str, Edit]]:
    """Yield every ``value[key]`` with the text of the value."""
    for at in range(1, len(walker.tokens)):
        last = walker.closing(at) if walker.word(at) == "[" else None
        first = walker.operand(at - 1)
        edit = None if last is None or first is None else _rewrite_bracket(walker, first, last)
        if edit is not None and first is not None:
            yield walker.piece(walker.start(first), walker.start(at)), edit


def _select_innermost(brackets: Iterable[tuple[str, Edit]]) -> list[tuple[str, Edit]]:
    pairs = list(brackets)
    edits = [edit for _, edit in pairs]
    return [
        (value, edit)
        for value, edit in pairs
        if not any(other is not edit and edit.start <= other.start and other.end <= edit.end for other in edits)
    ]


def _is_alike(written: str, printed: str) -> bool:
    """Return True if Spark may print the expression ``written`` as ``printed``."""
    one, other = (re.sub(r"[\s`]", "", text).lower() for text in (written, printed))
    one = _NAME_IN_BRACKETS.sub(r"\1", one)
    if one.startswith("(") or "(" in one:
        return one.startswith("(") or one.split("(")[0] == other.split("(")[0]
    return one.rsplit(".", 1)[-1] == other.rsplit(".", 1)[-1]


def _rewrite_bracket(walker: TokenWalker, first: int, last: int) -> Edit | None:
    opened = walker.opening(last)
    if opened is None or opened <= first:
        return None
    value = walker.piece(walker.start(first), walker.start(opened))
    key = walker.piece(walker.end(opened), walker.start(last))
    alone = last == opened + 2
    if alone and walker.tokens[opened + 1].token_type is TokenType.STRING:
        path = path_literal(path_step(walker.tokens[opened + 1].text))
    elif alone and key.isdigit():
        # Elements count from 1 in SQL and from 0 in a path; element 0 does not exist.
        path = path_literal(f"[{int(key) - 1}]") if int(key) else "CAST(NULL AS STRING)"
    else:
        name, place = f"CONCAT('$[\"', {key}, '\"]')", f"CONCAT('$[', CAST({key} AS BIGINT) - 1, ']')"
        path = f"CASE WHEN TYPEOF({key}) = 'string' THEN {name} ELSE {place} END"
    return Edit(walker.start(first), walker.end(last), f"VARIANT_GET({value}, {path}, 'variant')")


def _rewrite_dotted(walker: TokenWalker, first: int, base: str) -> Edit | None:
    """Return the edit of ``t.v.a.b``, in which the names after the VARIANT's own name are nested keys, or None."""
    names = [first]
    while walker.word(names[-1] + 1) == "." and names[-1] + 2 < len(walker.tokens):
        names.append(names[-1] + 2)
    at = next((place for place, token in enumerate(names[:-1]) if walker.tokens[token].text == base), None)
    if at is None:
        return None
    value = walker.piece(walker.start(first), walker.end(names[at]))
    for token in names[at + 1 :]:
        value = f"VARIANT_GET({value}, {path_literal(path_step(walker.tokens[token].text))}, 'variant')"
    return Edit(walker.start(first), walker.end(names[-1]), value)
