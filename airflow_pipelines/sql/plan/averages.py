"""AVG of decimals keeps its argument's type, where Spark widens it; the query's own text is rewritten, so both strategies agree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from airflow_pipelines.sql.dialect import DIALECT, parse_query, tokenise
from airflow_pipelines.sql.plan.analyzer import AnalysisFailed, Analyzer

_DECIMAL = re.compile(r"decimal\(\d+,\s*\d+\)")
_NAMES = frozenset({"avg", "mean"})
_KEPT = ("from_", "joins", "laterals")


@dataclass(frozen=True, slots=True)
class _Text:
    """Where one AVG stands in the text, its argument, and the FILTER and OVER clauses after it; ends are exclusive."""

    start: int
    argument: tuple[int, int]
    suffix: tuple[int, int]


def keep_decimal_scale(query: str, analyzer: Analyzer) -> str:
    """The query with every AVG over a DECIMAL(p,s) giving a DECIMAL(p,s).

    ``AVG(x)`` becomes ``CAST(SUM(x) / NULLIF(COUNT(x), 0) AS DECIMAL(p,s))``, with its FILTER, DISTINCT and OVER kept. The rest of
    the text stays as it is. An average whose argument's type cannot be found (in a correlated subquery) is left to Spark.

    :param query: Spark SQL that Spark accepts
    :param analyzer: knows the relations that the query reads
    """
    places = {place.start: place for place in _places(query)}
    if not places:
        return query
    tree = parse_query(query)
    types: dict[int, str] = {}
    for select in list(_selects(tree)):
        _note_types(select, types, analyzer)
    return _rewritten(query, 0, len(query), {at: (place, types[at]) for at, place in places.items() if at in types})


def _rewritten(query: str, start: int, end: int, averages: Mapping[int, tuple[_Text, str]]) -> str:
    """A piece of the query with its averages replaced; an average's argument may hold averages of a subquery."""
    parts = []
    at = start
    for here in sorted(averages):
        if here < at or here >= end:
            continue
        place, kind = averages[here]
        argument = _rewritten(query, *place.argument, averages)
        suffix = _rewritten(query, *place.suffix, averages)
        total, count = f"SUM({argument}){suffix}", f"COUNT({argument}){suffix}"
        parts.append(f"{query[at:here]}CAST({total} / NULLIF({count}, 0) AS {kind})")
        at = place.suffix[1]
    return "".join([*parts, query[at:end]])


def _places(query: str) -> Iterator[_Text]:
    tokens = tokenise(query)
    for at, token in enumerate(tokens[:-1]):
        opens = tokens[at + 1].token_type is TokenType.L_PAREN
        if token.text.lower() not in _NAMES or not opens or token.token_type is TokenType.IDENTIFIER:
            continue
        close = _closing(tokens, at + 1)
        end = _end_of_suffix(tokens, close)
        argument = (tokens[at + 1].end + 1, tokens[close].start)
        yield _Text(token.start, argument, (tokens[close].end + 1, tokens[end].end + 1))


def _end_of_suffix(tokens: Sequence[Token], at: int) -> int:
    """The last token of the FILTER and OVER clauses that follow token ``at``."""
    while at + 2 < len(tokens) and tokens[at + 1].text.lower() in {"filter", "over"}:
        opens = tokens[at + 2].token_type is TokenType.L_PAREN
        if not opens and tokens[at + 1].text.lower() == "filter":
            break
        at = _closing(tokens, at + 2) if opens else at + 2
    return at


def _closing(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for position in range(at, len(tokens)):
        kind = tokens[position].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0:
            return position
    return len(tokens) - 1


def _selects(tree: exp.Expr) -> Iterator[exp.Select]:
    """All SELECTs, each after those whose columns it may read: common table expressions in order, then FROM, then itself."""
    clause = tree.args.get("with_")
    if clause is not None:
        yield from _selects(clause)
    for child in tree.iter_expressions():
        if child is not clause:
            yield from _selects(child)
    if isinstance(tree, exp.Select):
        yield tree


def _note_types(select: exp.Select, types: dict[int, str], analyzer: Analyzer) -> None:
    """Note the type of each decimal average of one SELECT, and put that type in its place for the SELECTs around it."""
    for average in [node for node in select.find_all(exp.Avg, exp.Anonymous) if _is_average(node, select)]:
        argument = average.this if isinstance(average, exp.Avg) else average.expressions[0]
        if isinstance(argument, exp.Distinct):
            argument = argument.expressions[0]
        try:
            kind = analyzer.columns(_probe(select, argument))[0][1]
        except AnalysisFailed:
            continue
        if _DECIMAL.fullmatch(kind) and "start" in average.meta:
            types[average.meta["start"]] = kind.upper()
            whole: exp.Expr = average
            while isinstance(whole.parent, exp.Filter | exp.Window):
                whole = whole.parent
            whole.replace(exp.cast(exp.null(), kind, dialect=DIALECT))


def _is_average(node: exp.Expr, select: exp.Select) -> bool:
    if isinstance(node, exp.Anonymous) and (str(node.this).lower() not in _NAMES or len(node.expressions) != 1):
        return False
    return node.find_ancestor(exp.Select) is select


def _probe(select: exp.Select, argument: exp.Expr) -> str:
    """A query that has ``argument`` as its only column, in the scope of ``select``."""
    probe = exp.Select(expressions=[exp.alias_(argument.copy(), "p")])
    for part in _KEPT:
        value = select.args.get(part)
        if value:
            probe.set(part, [item.copy() for item in value] if isinstance(value, list) else value.copy())
    clauses: list[exp.Expr] = []
    above: exp.Expr | None = select
    while above is not None:
        clause = above.args.get("with_")
        if clause is not None:
            clauses = [*clause.expressions, *clauses]
        above = above.parent
    if clauses:
        probe.set("with_", exp.With(expressions=[clause.copy() for clause in clauses]))
    return probe.sql(dialect=DIALECT)
