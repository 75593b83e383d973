"""Plans of recursion: groups of mutually recursive views, and WITH RECURSIVE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.program.reasons import Reason
from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.plan.expressions import NotIncremental, sql
from airflow_pipelines.sql.plan.ir.expression import Expression, WhereClause
from airflow_pipelines.sql.plan.ir.full import CHOSEN, Full
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Scan, Select, Source, UnionAll
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.plan.ir.recursive import Recursive
from airflow_pipelines.sql.plan.ir.stage import Stage, ViewPlan
from airflow_pipelines.sql.plan.passes.canonical_form import canonical_query, columns_with_visible_forms
from airflow_pipelines.sql.plan.planner import plan_view
from airflow_pipelines.sql.plan.positions import Places
from airflow_pipelines.sql.plan.verify import require_same
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls
from airflow_pipelines.sql.syntax.dialect import parse_query

_VIEW = "__view"
"""The column with the number of the view that a row belongs to, if several views are one recursive relation."""
_GATHERING = ("group", "having", "qualify", "limit", "offset")


@dataclass(frozen=True, slots=True)
class CycleMember:
    """One view of a cycle.

    :param names: the column names of its query
    :param columns: the columns of the view
    """

    name: str
    query: str
    names: tuple[str, ...]
    columns: ColumnTypes


def plan_recursive_views(
    views: Sequence[CycleMember], others: Sequence[CycleMember], relations: Mapping[str, ColumnTypes], analyzer: Analyzer
) -> dict[str, ViewPlan]:
    """Plan the views of a cycle, which are computed together, as sets of rows.

    :param views: the views that are declared recursive
    :param others: the other views of the cycle, each after those it reads; their queries become part of the recursion, and they
     are also planned like any other view
    :param relations: the columns of all relations that the cycle reads besides itself; declared to ``analyzer`` already, as the
     cycle's own views are
    :param analyzer: the analyzer, which answers about Spark's view of queries
    :returns: the plans of ``views``
    """
    one = views[0] if len(views) == 1 else None
    relation = one.name if one is not None else f"{views[0].name}$r"
    columns = one.columns if one is not None else _unite_columns(views)
    if one is None:
        analyzer.declare({relation: columns})
    query = _cycle_query(views, others, relation, columns)
    answer = canonical_query(query, columns)
    inputs = tuple(relations)
    known = {**relations, relation: columns}
    reason: Reason | None = None
    try:
        stages, body = _body(relation, _as_sets(query, analyzer), known, columns, analyzer)
    except NotIncremental as error:
        stages, body = (), None
        reason = Places.within(query).of_other_text(query).reason(f"the recursion is recomputed: {error}", error.tree)
    own = tuple(sorted(body.reads - {relation})) if body is not None else inputs
    stages = (*stages, Stage(relation, columns, Recursive(relation, columns, answer, own, body, reason=reason)))
    plans = {}
    for at, view in enumerate(views):
        pick = None if one is not None else _pick(view, at, relation)
        full = Stage(view.name, view.columns, Recursive(relation, columns, answer, inputs, None, result=pick, reason=CHOSEN))
        if one is None:
            stages = (*stages, Stage(view.name, view.columns, _part(view, at, relation, columns)))
        plans[view.name] = ViewPlan(view.name, view.query, view.columns, stages, full)
        # The first view has the stages that all of them read.
        stages = ()
    return plans


def plan_query(
    view: str,
    query: str,
    relations: Mapping[str, ColumnTypes],
    columns: ColumnTypes,
    reads: Sequence[str],
    analyzer: Analyzer,
    append_only: Set[str] = frozenset(),
    places: Places | None = None,
) -> ViewPlan:
    """Plan a view like :func:`plan_view`, with a stage of its own for each recursive common table expression at the query's top.

    :param view: the canonical name
    :param query: see :func:`plan_view`, as are the others
    :param relations: the columns of all relations that the query may read
    :param columns: the view's columns
    :param reads: the relations that the query names
    :param analyzer: the analyzer, which answers about Spark's view of queries
    :param append_only: those of ``relations`` that never lose a row
    :param places: the positions of the parts of ``query`` in the program
    :returns: a plan that always has the full strategy
    """
    tree = parse_query(query)
    clause = tree.args.get("with_")
    if clause is None or not clause.args.get("recursive"):
        return plan_view(view, query, relations, columns, reads, analyzer, append_only, places=places)
    places = places or Places.within(query)
    try:
        require_same(query, tree, analyzer, "the query could not be printed with the same meaning")
        rest, stages = _without_recursion(view, tree, relations, analyzer)
    except NotIncremental as error:
        full = Stage(view, columns, Full(canonical_query(query, columns), tuple(reads), places.reason(error)))
        return ViewPlan(view, query, columns, (full,), full)
    own = {stage.relation: stage.columns for stage in stages if isinstance(stage.node, Recursive)}
    noncanonical = {name: columns_with_visible_forms(kinds) for name, kinds in own.items()}
    known, text = {**relations, **own}, sql(rest)
    elsewhere = places.of_other_text(text)
    plan = plan_view(view, text, known, columns, (*reads, *own), analyzer, noncanonical=noncanonical, places=elsewhere)
    full = Stage(view, plan.columns, Full(canonical_query(query, plan.columns), tuple(reads), CHOSEN))
    return ViewPlan(view, query, plan.columns, (*stages, *plan.stages), full)


def _unite_columns(views: Sequence[CycleMember]) -> ColumnTypes:
    """Return the columns of one relation that holds the rows of several views."""
    parts = [(_name(at, place), kind) for at, view in enumerate(views) for place, (_, kind) in enumerate(view.columns)]
    return ((_VIEW, "int"), *parts)


def _name(view: int, column: int) -> str:
    return f"__c{view}_{column}"


def _cycle_query(views: Sequence[CycleMember], others: Sequence[CycleMember], relation: str, columns: ColumnTypes) -> str:
    """Return the query whose least fixed point is the contents of ``relation``."""
    commons = [] if len(views) == 1 else [(view.name, _pick(view, at, relation)) for at, view in enumerate(views)]
    commons += [(other.name, _rename_columns(other, other.query, [name for name, _ in other.columns])) for other in others]
    definitions = ", ".join(f"{quote(name)} AS ({query})" for name, query in commons)
    if len(views) == 1 and not commons:
        return views[0].query
    if len(views) == 1 and parse_query(views[0].query).args.get("with_") is None:
        # The relation's columns are taken by position, so that no renaming is needed.
        return f"WITH {definitions} {views[0].query}"
    parts = []
    for at, view in enumerate(views):
        if len(views) == 1:
            parts.append(_rename_columns(view, view.query, [name for name, _ in view.columns], always=True))
            continue
        inner = {_name(at, place): name for place, name in enumerate(view.names)}
        items = [
            f"{at} AS {quote(name)}"
            if name == _VIEW
            else (f"b.{quote(inner[name])} AS {quote(name)}" if name in inner else f"CAST(NULL AS {kind}) AS {quote(name)}")
            for name, kind in columns
        ]
        parts.append(f"SELECT {', '.join(items)} FROM ({view.query}) AS b")
    return f"WITH {definitions} {' UNION ALL '.join(parts)}"


def _rename_columns(member: CycleMember, query: str, names: Sequence[str], *, always: bool = False) -> str:
    """Return a query with other column names."""
    if tuple(names) == member.names and not always:
        return query
    items = ", ".join(f"b.{quote(old)} AS {quote(new)}" for old, new in zip(member.names, names, strict=True))
    return f"SELECT {items} FROM ({query}) AS b"


def _pick(view: CycleMember, at: int, relation: str) -> str:
    """Return the query for a view's rows in the relation that holds several views."""
    items = ", ".join(f"{quote(_name(at, place))} AS {quote(name)}" for place, (name, _) in enumerate(view.columns))
    return f"SELECT {items} FROM {quote(relation)} WHERE {quote(_VIEW)} = {at}"


def _part(view: CycleMember, at: int, relation: str, columns: ColumnTypes) -> Select:
    """Return :func:`_pick` as a node."""
    source = Source("s", Scan(relation, tuple(name for name, _ in columns)))
    items = tuple(Item(name, Expression.column("s", _name(at, place))) for place, (name, _) in enumerate(view.columns))
    return Select((source,), items, WhereClause(f"`s`.{quote(_VIEW)} = {at}"))


def _body(
    relation: str,
    query: str,
    known: Mapping[str, ColumnTypes],
    columns: ColumnTypes,
    analyzer: Analyzer,
    noncanonical: Mapping[str, frozenset[str]] = MappingProxyType({}),
) -> tuple[tuple[Stage, ...], Linear]:
    """Split a recursive query into stages outside of the recursion and a linear node over these and ``relation``.

    :param noncanonical: see :func:`plan_view`
    :raises NotIncremental: if a part within the recursion is not linear
    """
    plan = plan_view(relation, query, known, columns, tuple(known), analyzer, noncanonical=noncanonical)
    if plan.columns != columns:
        raise NotIncremental("its query has other types than its relation")
    stages: list[Stage] = []
    within: dict[str, Linear] = {}
    for stage in plan.stages:
        last = stage is plan.stages[-1]
        node = stage.node
        depends = last or bool(node.reads & {relation, *within})
        if depends and isinstance(node, Select | UnionAll):
            within[stage.relation] = _inline(node, within)
        elif not depends:
            stages.append(stage)
        elif node.reads & {relation, *within}:
            raise NotIncremental(plan.reason or f"a part of it ({stage.strategy}) has no rule that adds up over rounds")
        else:
            stages.append(replace(stage, relation=f"{relation}$base"))
            within[relation] = Scan(f"{relation}$base", tuple(name for name, _ in columns))
    return tuple(stages), within[relation]


def _inline(node: Linear, within: Mapping[str, Linear]) -> Linear:
    """Return the node with relations replaced by their nodes."""
    match node:
        case Scan():
            inner = within.get(node.relation)
            if inner is None or inner.columns == node.columns:
                return node if inner is None else inner
            return Select((Source("s", inner),), tuple(Item(name, Expression.column("s", name)) for name in node.columns))
        case UnionAll():
            return replace(node, parts=tuple(_inline(part, within) for part in node.parts))
        case Select():
            return replace(node, sources=tuple(replace(source, node=_inline(source.node, within)) for source in node.sources))


def _as_sets(query: str, analyzer: Analyzer) -> str:
    """Return the query without DISTINCTs that have no effect because its answer is a set anyway."""
    tree = parse_query(query)
    require_same(query, tree, analyzer, "the query could not be printed with the same meaning")
    for common in tree.ctes:
        _drop_distinct(common.this)
    _drop_distinct(tree)
    return sql(tree)


def _drop_distinct(tree: exp.Expr) -> None:
    """Remove DISTINCT from a query of which only the distinct rows matter."""
    match tree:
        case exp.Subquery() if not any(tree.args.get(name) for name in _GATHERING):
            _drop_distinct(tree.this)
        case exp.Union() if not any(tree.args.get(name) for name in _GATHERING):
            tree.set("distinct", False)
            _drop_distinct(tree.this)
            _drop_distinct(tree.expression)
        case exp.Select() if not any(tree.args.get(name) for name in _GATHERING):
            distinct = tree.args.get("distinct")
            if any(True for item in tree.expressions for _ in aggregate_calls(item)) or tree.find(exp.Window) is not None:
                return
            if distinct is not None and distinct.args.get("on") is None:
                tree.set("distinct", None)
            clause = tree.args.get("from_")
            joins = tree.args.get("joins") or []
            if clause is not None and all(not join.args.get("side") and not join.args.get("method") for join in joins):
                for source in [clause.this, *(join.this for join in joins)]:
                    if isinstance(source, exp.Subquery):
                        _drop_distinct(source)


def _without_recursion(
    view: str, tree: exp.Expr, relations: Mapping[str, ColumnTypes], analyzer: Analyzer
) -> tuple[exp.Expr, list[Stage]]:
    """Replace the recursive common table expressions of a query by relations; return the query and the stages for these."""
    rest = tree.copy()
    clause = rest.args["with_"]
    stages: list[Stage] = []
    known = dict(relations)
    for at, common in enumerate(clause.expressions):
        if not _reads(common.this, common.alias):
            continue
        relation = f"{view}$r{at + 1}"
        before = clause.copy()
        before.set("expressions", before.expressions[: at + 1])
        probe = exp.select("*").from_(exp.Table(this=exp.to_identifier(common.alias, quoted=True)))
        probe.set("with_", before)
        columns = analyzer.columns(sql(probe))
        analyzer.declare({relation: columns})
        known[relation] = columns
        query = common.this.unnest()
        if not isinstance(query, exp.Union) or query.args.get("distinct"):
            raise NotIncremental("a recursive common table expression is anchor UNION ALL step")
        own = exp.select(*(exp.column(exp.to_identifier(name, quoted=True)) for name, _ in columns))
        common.set("this", own.from_(exp.Table(this=exp.to_identifier(relation, quoted=True))))
        common.args["alias"].set("columns", [])
        before.set("expressions", [inner.copy() for inner in clause.expressions[: at + 1]])
        before.set("recursive", False)
        text = f"{sql(before)} {sql(query)}"
        body_stages, node = _body(relation, text, known, columns, analyzer, {relation: columns_with_visible_forms(columns)})
        if not isinstance(node, UnionAll) or _scans(node.parts[0], relation) or _scans(node, relation) != 1:
            raise NotIncremental("a recursion whose step reads it more than once has no incremental rule")
        inputs = tuple(sorted(node.reads - {relation}))
        stages += [
            *body_stages,
            Stage(relation, columns, Recursive(relation, columns, canonical_query(text, columns), inputs, node, distinct=False)),
        ]
    clause.set("recursive", False)
    return rest, stages


def _reads(tree: exp.Expr, name: str) -> bool:
    return any(table.name == name and len(table.parts) == 1 for table in tree.find_all(exp.Table))


def _scans(node: Linear, relation: str) -> int:
    """Return how often a node reads a relation."""
    return sum(1 for scan in _all_scans(node) if scan.relation == relation)


def _all_scans(node: Linear) -> Iterator[Scan]:
    match node:
        case Scan():
            yield node
        case Select():
            for source in node.sources:
                yield from _all_scans(source.node)
        case UnionAll():
            for part in node.parts:
                yield from _all_scans(part)
