"""The rewrite that makes LIMIT and OFFSET deterministic: rows are sorted by all columns after those of ORDER BY."""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.probe import output_columns
from airflow_pipelines.sql.rewrite.token_walker import TokenWalker, mentions
from airflow_pipelines.sql.syntax.dialect import parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited
from airflow_pipelines.sql.values.total_order import has_order, sortable


def deterministic_limits(query: Edited, analyzer: Analyzer) -> Edited:
    """Make LIMIT and OFFSET always take the same rows.

    All columns of the result are added to the ORDER BY by their numbers; without ORDER BY they are the order. Rows that agree in
    all columns are interchangeable. A limit inside EXISTS stays as it is, because only the number of rows matters there.

    :param query: Spark SQL that Spark accepts
    :param analyzer: the analyzer, which knows the relations that the query reads
    """
    if not mentions(query.text, "limit", "offset"):
        return query
    tree = parse_query(query.text)
    walker = TokenWalker(query.text)
    edits = []
    for node in tree.find_all(exp.Query):
        if isinstance(node.parent, exp.Exists):
            continue
        at = _limit(node, walker)
        if at is not None:
            edits += _edit(node, at, walker, analyzer)
    return query.edit(edits)


def _limit(node: exp.Expr, walker: TokenWalker) -> int | None:
    """Return the token LIMIT or OFFSET of a query, whichever comes first."""
    places = []
    for clause in (node.args.get("limit"), node.args.get("offset")):
        starts = [part.meta["start"] for part in clause.walk() if "start" in part.meta] if clause is not None else []
        if starts:
            first = next(at for at, token in enumerate(walker.tokens) if token.start == min(starts))
            while walker.word(first) not in {"limit", "offset"} and first > 0:
                first -= 1
            places.append(first)
    return min(places, default=None)


def _edit(node: exp.Expr, at: int, walker: TokenWalker, analyzer: Analyzer) -> list[Edit]:
    order = node.args.get("order")
    if order is not None and any(isinstance(part.this, exp.Var) and part.this.name.upper() == "ALL" for part in order.expressions):
        return []
    ties = _columns(node, analyzer)
    if not ties:
        return []
    if order is None:
        return [Edit(walker.start(at), walker.start(at), f"ORDER BY {', '.join(ties)} ")]
    behind = walker.end(_end_of_order(walker, at) - 1)
    return [Edit(behind, behind, f", {', '.join(ties)}")]


def _columns(node: exp.Expr, analyzer: Analyzer) -> list[str]:
    """Return sort keys for all columns of a query: their numbers, and expressions for those that Spark cannot sort by."""
    bare = node.copy()
    for part in ("order", "limit", "offset"):
        bare.set(part, None)
    bare.parent = node.parent
    columns = output_columns(bare, analyzer)
    if columns is None:
        items = node.selects if isinstance(node, exp.Query) else []
        return [] if any(item.is_star for item in items) else [str(number + 1) for number in range(len(items))]
    names = [name for name, _ in columns]
    ties = []
    for number, (name, kind) in enumerate(columns, 1):
        if has_order(kind):
            ties.append(str(number))
        elif names.count(name) == 1:
            ties.append(sortable(quote(name), kind))
    return ties


def _end_of_order(walker: TokenWalker, at: int) -> int:
    """Return the token behind the ORDER BY list that comes before token ``at``: a WINDOW clause may be in between."""
    end = at
    place = at - 1
    while place >= 0:
        word = walker.word(place)
        if word == ")":
            place = walker.opening(place) or 0
        elif word == "window":
            end = place
        elif word == "order by":
            return end
        place -= 1
    return at
