"""The rewrite of ASOF joins to lateral subqueries that give the nearest of the matching rows."""

from __future__ import annotations

from collections.abc import Iterator, Set

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.analyzer import AnalysisFailed, Analyzer
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.rewrite.probe import with_visible
from airflow_pipelines.sql.rewrite.token_walker import mentions
from airflow_pipelines.sql.syntax.asof import AsofPlaces, asof_places
from airflow_pipelines.sql.syntax.dialect import DIALECT, SyntaxFailure, parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited
from airflow_pipelines.sql.values.total_order import has_order, sortable

_AT = "__asof"
_RENAMED = "__asof_"
"""The prefix for the name of a column of the right side that is also the name of a table on the left."""
_NEAREST = {exp.GTE: "DESC", exp.GT: "DESC", exp.LTE: "ASC", exp.LT: "ASC"}
"""The sort direction of the right side if it is the right operand of the comparison."""
_OPPOSITE = {"DESC": "ASC", "ASC": "DESC"}


def asof_joins(query: Edited, analyzer: Analyzer) -> Edited:
    """Rewrite every ASOF join to a join with a lateral subquery.

    ``LEFT ASOF JOIN t MATCH_CONDITION (a.ts >= t.ts) ON a.k = t.k`` gives for each row on the left the row of ``t`` with the latest
    ``ts`` that is not after its own, among those with its key, or NULLs. Among several such rows the one with the greatest columns
    is taken (the least if the next row is looked for), so that the answer depends on the data alone.

    :param query: Spark SQL with folded names
    :param analyzer: the analyzer, which knows the relations that the query reads
    :raises SyntaxFailure: if a join's conditions are not of that form; offsets are those of the query as first written
    """
    while mentions(query.text, "asof"):
        joins = list(_find_innermost(parse_query(query.text)))
        if not joins:
            break
        query = query.edit([edit for join, places in joins for edit in _edits(query, join, places, analyzer)])
    return query


def _find_innermost(tree: exp.Expr) -> Iterator[tuple[exp.Join, AsofPlaces]]:
    for join in tree.find_all(exp.Join):
        places = asof_places(join)
        if places is not None and not any(asof_places(other) for other in join.find_all(exp.Join) if other is not join):
            yield join, places


def _edits(query: Edited, join: exp.Join, places: AsofPlaces, analyzer: Analyzer) -> list[Edit]:
    alias = join.this.alias_or_name
    if not alias or not isinstance(join.this, exp.Table | exp.Subquery):
        raise _failure(query, places.table, "The right side of an ASOF JOIN must be a relation, or a subquery with a name")
    side, direction = _order(query, join, places, alias)
    left = _check_equalities(query, join, places, alias) | _owners(query, join.args["match_condition"], places.match)
    columns = _columns(join, query.text[slice(*places.table)], alias, analyzer)
    names = [name for name, _ in columns]
    # Within the subquery a column would hide the table of the same name.
    renamed = set(names) & left if len(set(names)) == len(names) else set()
    begin, behind = _source(names, renamed, alias)
    kept = ", ".join(_rename_item(name, renamed, back=True) for name in names) if renamed else f"* EXCEPT ({_AT})"
    start = f"{'LEFT' if join.args.get('side') else 'INNER'} JOIN LATERAL (SELECT {kept} FROM (SELECT "
    order = f"ORDER BY {_ties(columns, direction)} LIMIT 1"
    return [
        Edit(
            places.join[0],
            places.table[0],
            f"{start}{_print_renamed(side, alias, renamed)} AS {_AT}, {quote(alias)}.* FROM {begin}",
        ),
        Edit(places.table[1], places.match[0], f"{behind} WHERE ("),
        *_rename_in_condition(join.args["match_condition"], alias, renamed),
        Edit(places.match[1], places.on[0], ") AND ("),
        *_rename_in_condition(join.args["on"], alias, renamed),
        Edit(places.on[1], places.on[1], f") {order})) AS {quote(alias)} ON TRUE"),
    ]


def _columns(join: exp.Join, table: str, alias: str, analyzer: Analyzer) -> ColumnTypes:
    """Return the columns of the right side, or no columns if Spark refuses the query for them."""
    try:
        return analyzer.columns(with_visible(join, f"SELECT {quote(alias)}.* FROM {table}"))
    except AnalysisFailed:
        return ()


def _source(names: list[str], renamed: Set[str], alias: str) -> tuple[str, str]:
    """Return the text before and behind the right side's table that renames some of its columns."""
    if not renamed:
        return "", ""
    items = ", ".join(f"{quote(alias)}.{_rename_item(name, renamed)}" for name in names)
    return f"(SELECT {items} FROM ", f") AS {quote(alias)}"


def _rename_item(name: str, renamed: Set[str], *, back: bool = False) -> str:
    """Return a column as an item of a SELECT that renames it, or that gives it its own name back."""
    if name not in renamed:
        return quote(name)
    pair = quote(name), quote(_RENAMED + name)
    return f"{pair[1]} AS {pair[0]}" if back else f"{pair[0]} AS {pair[1]}"


def _rename_in_condition(condition: exp.Expr, alias: str, renamed: Set[str]) -> list[Edit]:
    """Return the edits of a condition that reads columns by their names in the subquery."""
    names = [name for name in _own_names(condition, alias) if name.name in renamed]
    return [Edit(name.meta["start"], name.meta["end"] + 1, quote(_RENAMED + name.name)) for name in names]


def _print_renamed(side: exp.Expr, alias: str, renamed: Set[str]) -> str:
    """Return an expression of the right side over its columns' names in the subquery."""
    copy = side.copy()
    for name in _own_names(copy, alias):
        if name.name in renamed:
            name.set("quoted", True)
            name.set("this", _RENAMED + name.name)
    return copy.sql(dialect=DIALECT)


def _own_names(tree: exp.Expr, alias: str) -> list[exp.Expr]:
    """Return the names of the right side's columns in an expression."""
    return [column.parts[1] for column in tree.find_all(exp.Column) if column.parts[0].name == alias]


def _order(query: Edited, join: exp.Join, places: AsofPlaces, alias: str) -> tuple[exp.Expr, str]:
    """Return the right side's expression in MATCH_CONDITION, and the direction that sorts the nearest row first."""
    match = join.args["match_condition"].unnest()
    direction = _NEAREST.get(type(match))
    sides = [match.left, match.right] if isinstance(match, exp.Binary) and direction is not None else []
    owners = [_owners(query, side, places.match) for side in sides]
    if direction is not None and owners[0] and owners[1] == {alias} and alias not in owners[0]:
        return sides[1], direction
    if direction is not None and owners[1] and owners[0] == {alias} and alias not in owners[1]:
        return sides[0], _OPPOSITE[direction]
    wanted = f"MATCH_CONDITION must compare an expression of the left side with one of {alias} by >=, >, <= or <"
    raise _failure(query, places.match, wanted)


def _check_equalities(query: Edited, join: exp.Join, places: AsofPlaces, alias: str) -> set[str]:
    """Check that all parts of ON are equalities of both sides, and return the tables that it reads."""
    read: set[str] = set()
    for part in _conjuncts(join.args["on"]):
        sides = [part.left, part.right] if isinstance(part, exp.EQ | exp.NullSafeEQ) else []
        owners = [_owners(query, side, places.on) for side in sides]
        if {alias} not in owners or not any(other and alias not in other for other in owners):
            raise _failure(query, places.on, f"ON of an ASOF JOIN must be equalities of the left side with {alias}, joined by AND")
        read = read.union(*owners)
    return read


def _conjuncts(tree: exp.Expr) -> Iterator[exp.Expr]:
    inner = tree.unnest()
    if isinstance(inner, exp.And):
        yield from _conjuncts(inner.left)
        yield from _conjuncts(inner.right)
    else:
        yield inner


def _owners(query: Edited, tree: exp.Expr, place: tuple[int, int]) -> set[str]:
    """Return the qualifiers of all columns in an expression."""
    if tree.find(exp.Query, exp.Subquery):
        raise _failure(query, place, "A condition of an ASOF JOIN cannot hold a subquery")
    owners = set()
    for column in tree.find_all(exp.Column):
        if not column.table:
            raise _failure(
                query, place, f"In an ASOF JOIN's conditions, say which table {column.name} belongs to: <table>.{column.name}"
            )
        owners.add(column.parts[0].name)
    return owners


def _ties(columns: ColumnTypes, direction: str) -> str:
    """Return the sort keys of the matching rows: the expression in MATCH_CONDITION, then all columns."""
    # If the columns are not known, Spark sorts by all of them if it can.
    if all(has_order(kind) for _, kind in columns):
        return f"ALL {direction}"
    names = [sortable(quote(name), kind) for name, kind in columns]
    return ", ".join(f"{name} {direction}" for name in [_AT, *names])


def _failure(query: Edited, place: tuple[int, int], message: str) -> SyntaxFailure:
    start, end = query.origin(*place)
    return SyntaxFailure(start, end, message)
