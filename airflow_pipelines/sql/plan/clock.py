"""The replacement of reads of the clock by markers that change less often, and by joins with them.

Each call of NOW() and its relatives is a scalar subquery over the clock's marker when this pass begins. The largest expressions
that depend on nothing but the clock get markers of their own, which change less often than the clock (CURRENT_DATE once a day).
Where a cross join with the marker is equivalent to the subquery, it replaces the subquery, because a join has an incremental
delta.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.spark_types import spark_type
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.plan.analyzer import AnalysisFailed, Analyzer
from airflow_pipelines.sql.plan.ir.markers import CLOCK, CLOCK_COLUMN, CLOCK_RELATION, Marker
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls, is_aggregate
from airflow_pipelines.sql.syntax.dialect import DIALECT, parse_query

_LEAVES = (exp.Literal, exp.Boolean, exp.Null, exp.DataType, exp.DataTypeParam, exp.Var, exp.Identifier, exp.IntervalSpan)
_BARRIERS = (exp.Query, exp.Window, exp.Lambda, exp.Star, exp.Column, exp.UDTF)
_PUSHED = "pushed"
_FROM_PLACES = (exp.From, exp.Join, exp.Subquery, exp.CTE, exp.With, exp.SetOperation)


def _is_hoisted(kind: ColumnType) -> bool:
    """Return True if values of a type that are computed from the clock become a marker of their own."""
    return kind.is_timestamp or kind.is_date or kind.is_boolean or kind.is_integer or kind.is_decimal


@dataclass(slots=True)
class ClockMarkers:
    """The markers of a program's clock expressions; equal expressions share one."""

    markers: dict[str, Marker] = field(default_factory=dict)

    def rewrite(self, query: str, analyzer: Analyzer) -> str:
        """Replace a query's reads of the clock by markers that change less often, without changing its meaning.

        :param query: a query after :func:`~airflow_pipelines.sql.rewrite.clock_calls.clock_edits`
        :param analyzer: the analyzer, which knows the relations that the query reads, and the clock's marker
        """
        tree = parse_query(query)
        # The tree is used only if Spark reads its text as the same query.
        if not analyzer.same_plan(query, tree.sql(dialect=DIALECT)):
            self._add(CLOCK.text, CLOCK.type)
            return query
        # Innermost first, because conditions are copied when they are moved.
        for select in reversed(list(tree.find_all(exp.Select))):
            if not _is_plain(select):
                _push_down(select)
        for node in _find_hoistable(tree):
            self._replace(node, analyzer)
        rewritten = tree.sql(dialect=DIALECT)
        try:
            kinds = [[kind for _, kind in analyzer.columns(text)] for text in (query, rewritten)]
        except AnalysisFailed:
            kinds = [[], ["refused"]]
        if kinds[0] != kinds[1]:
            self._add(CLOCK.text, CLOCK.type)
            return query
        return rewritten

    def read_by(self, query: str) -> tuple[Marker, ...]:
        """Return the markers that a query names."""
        names = {table.name for table in parse_query(query).find_all(exp.Table)}
        return tuple(marker for marker in self.markers.values() if marker.relation in names)

    def _add(self, text: str, kind: str) -> Marker:
        if text == CLOCK.text:
            return self.markers.setdefault(text, CLOCK)
        number = 1 + sum(1 for marker in self.markers.values() if marker is not CLOCK)
        return self.markers.setdefault(text, Marker(f"now${number}", f"__now{number}", kind, text, follows_clock=True))

    def _replace(self, node: exp.Expr, analyzer: Analyzer) -> None:
        text = _print_over_clock(node)
        kind = CLOCK.type if text == CLOCK.text else _kind(f"SELECT {text} FROM {quote(CLOCK_RELATION)}", analyzer)
        if kind is None or not _is_hoisted(spark_type(kind)):
            for inner in list(_clock_reads(node)):
                self._replace(inner, analyzer)
            return
        marker = self._add(text, kind)
        analyzer.declare({marker.relation: ((marker.column, marker.type),)})
        select = node.find_ancestor(exp.Select)
        column: exp.Expr
        if select is not None and _may_join(select, node):
            alias = f"__{marker.relation.replace('$', '')}"
            _join(select, marker, alias)
            column = exp.column(exp.to_identifier(marker.column, quoted=True), table=exp.to_identifier(alias, quoted=True))
        else:
            column = parse_query(f"(SELECT {quote(marker.column)} FROM {quote(marker.relation)})")
        if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
            column = exp.alias_(column, f"__now_{node.index}", quoted=True)
        node.replace(column)


def _kind(query: str, analyzer: Analyzer) -> str | None:
    """Return the type of a query's value over the clock, or None if Spark cannot plan it.

    With None the view itself fails instead of a marker.
    """
    try:
        kind = analyzer.columns(query)[0][1]
    except AnalysisFailed:
        return None
    return kind if analyzer.planning_error(query) is None else None


def _clock_reads(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the scalar subqueries over the clock's marker."""
    for node in tree.find_all(exp.Subquery):
        if _is_clock_read(node):
            yield node


def _is_clock_read(node: exp.Expr | None) -> bool:
    if not isinstance(node, exp.Subquery) or not isinstance(node.this, exp.Select):
        return False
    source = node.this.args.get("from_")
    return source is not None and isinstance(source.this, exp.Table) and source.this.name == CLOCK_RELATION


def _find_hoistable(tree: exp.Expr) -> list[exp.Expr]:
    """Return the largest expressions that depend on the clock alone."""
    expressions: dict[int, exp.Expr] = {}
    for read in _clock_reads(tree):
        node: exp.Expr = read
        while node.parent is not None and _is_over_clock(node.parent):
            node = node.parent
        expressions[id(node)] = node
    return list(expressions.values())


def _is_over_clock(node: exp.Expr) -> bool:
    """Return True if a node is an expression over the clock and constants."""
    if _is_clock_read(node) or isinstance(node, _LEAVES):
        return True
    expression = isinstance(node, exp.Condition | exp.Func | exp.Interval) and not isinstance(node, (*_BARRIERS, exp.Subquery))
    if not expression or is_aggregate(node) or isinstance(node, exp.Alias | exp.Ordered):
        return False
    return all(_is_over_clock(child) for child in node.iter_expressions())


def _print_over_clock(node: exp.Expr) -> str:
    """Return the text of an expression over the clock's column."""
    copy = node.copy()
    column = exp.column(exp.to_identifier(CLOCK_COLUMN, quoted=True))
    if _is_clock_read(copy):
        return column.sql(dialect=DIALECT)
    for read in list(_clock_reads(copy)):
        read.replace(column.copy())
    return copy.sql(dialect=DIALECT)


def _may_join(select: exp.Select, node: exp.Expr) -> bool:
    """Return True if a cross join with a marker in ``select`` is equivalent to a scalar subquery in the place of ``node``."""
    source = select.args.get("from_")
    placed = _PUSHED in select.meta or _in_from(select)
    if source is None or not placed or any(table.args.get("pivots") for table in select.find_all(exp.Table)):
        return False
    for star in select.find_all(exp.Star):
        if star.find_ancestor(exp.Select) is not select or isinstance(star.parent, exp.Count | exp.Column):
            continue
        if star.parent is not select or any(star.args.get(key) for key in ("replace", "rename")):
            return False
    path: list[exp.Expr] = [node]
    while path[-1].parent is not None and path[-1].parent is not select:
        path.append(path[-1].parent)
    place = path[-1].arg_key
    if place == "where":
        return True
    if place != "expressions" or any(isinstance(part, exp.Window | exp.Lambda) for part in path):
        return False
    if any(is_aggregate(part) or isinstance(part, exp.Filter) for part in path):
        return True
    aggregated = any(True for item in select.expressions for _ in aggregate_calls(item))
    return not (aggregated or select.args.get("group") or select.args.get("having"))


def _is_plain(select: exp.Select) -> bool:
    """Return True if a SELECT is one block of filters, inner joins and aggregates, to which a marker can be added as a source."""
    inner = all(not (join.side or join.method) and (join.kind or "INNER").upper() in {"INNER", "CROSS"} for join in _joins(select))
    if not inner or not _in_from(select) or select.args.get("qualify") or select.args.get("windows"):
        return False
    parts = [*select.expressions, *(select.args[key] for key in ("where", "having") if select.args.get(key) is not None)]
    nested = (node for part in parts for node in part.find_all(exp.Query, exp.Window))
    return all(_is_clock_query(node) for node in nested)


def _joins(select: exp.Select) -> list[exp.Join]:
    return list(select.args.get("joins") or [])


def _push_down(select: exp.Select) -> None:
    """Push the conditions of a WHERE that compare the first table of FROM with the clock into a derived table around it.

    Then the marker is joined with that table alone, and the joins, window functions or subqueries around it see only the rows that
    enter and leave the derived table when the clock moves.
    """
    source, where = select.args.get("from_"), select.args.get("where")
    if source is None or where is None or not isinstance(source.this, exp.Table) or source.this.args.get("pivots"):
        return
    table = source.this
    if _is_clock_read(select.parent) or any((join.side or "").upper() in {"RIGHT", "FULL"} for join in _joins(select)):
        return
    alone = not _joins(select) and not select.args.get("laterals") and _in_from(select)
    names = {table.alias_or_name} | ({""} if alone else set())
    moved = [part for part in _conjuncts(where.this) if any(True for _ in _clock_reads(part)) and _is_reading_only(part, names)]
    if not moved:
        return
    inner = exp.Select(expressions=[exp.Star()])
    inner.set("from_", exp.From(this=table.copy()))
    inner.set("where", exp.Where(this=exp.and_(*(part.copy() for part in moved), copy=False)))
    inner.meta[_PUSHED] = True
    kept = [part.copy() for part in _conjuncts(where.this) if not any(part is other for other in moved)]
    select.set("where", exp.Where(this=exp.and_(*kept, copy=False)) if kept else None)
    alias = table.args.get("alias")
    name = alias.copy() if alias is not None else exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
    select.set("from_", exp.From(this=exp.Subquery(this=inner, alias=name)))


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(condition, exp.And):
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield condition


def _is_reading_only(part: exp.Expr, names: Collection[str]) -> bool:
    """Return True if a condition reads, besides the clock, only columns of the tables ``names`` and has no other subquery."""
    for node in part.walk():
        if isinstance(node, exp.Query) and not (_is_clock_read(node) or _is_clock_query(node)):
            return False
        if isinstance(node, exp.Column) and node.name != CLOCK_COLUMN and node.table not in names:
            return False
    return True


def _is_clock_query(node: exp.Expr) -> bool:
    """Return True if a node is a read of the clock or the query in one."""
    return _is_clock_read(node) or (node.parent is not None and _is_clock_read(node.parent))


def _in_from(select: exp.Select) -> bool:
    """Return True if a SELECT is the query itself or is in FROM, not in an expression, where other rules apply."""
    node: exp.Expr = select
    while node.parent is not None:
        node = node.parent
        if not isinstance(node, (*_FROM_PLACES, exp.Select)):
            return False
    return True


def _join(select: exp.Select, marker: Marker, alias: str) -> None:
    """Add the marker to the FROM clause of ``select``, once."""
    source = select.args["from_"]
    joins = list(select.args.get("joins") or [])
    named = [source.this, *(join.this for join in joins)]
    if any(table.alias == alias for table in named):
        return
    table = exp.to_table(quote(marker.relation), dialect=DIALECT).as_(alias, quoted=True)
    select.set("from_", exp.From(this=table))
    select.set("joins", [exp.Join(this=source.this, kind="CROSS"), *joins])
    for item in select.expressions:
        if isinstance(item, exp.Star):
            hidden = exp.column(exp.to_identifier(marker.column, quoted=True))
            item.set("except_", [*(item.args.get("except_") or []), hidden])
