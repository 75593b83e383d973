"""A pass that moves generators with several columns from the SELECT list into LATERAL VIEW, where each column has a name."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from airflow_pipelines.sql.plan.analyzer import AnalysisFailed
from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import NotIncremental, is_generator_call, sql
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls


def lateral_generators(tree: exp.Expr, builder: Builder) -> exp.Expr:
    """Make ``SELECT g.p, g.x FROM t LATERAL VIEW posexplode(l) g AS p, x`` of ``SELECT posexplode(l) AS (p, x) FROM t``.

    Without names for its columns, only a generator of the query itself is moved: then Spark gives their names.

    :param tree: a query that Spark accepts; it is changed
    :param builder: the plan, which has the analyzer
    :returns: the query
    :raises NotIncremental: if the names of the columns cannot be determined
    """
    for select in list(tree.find_all(exp.Select)):
        generators = [item for item in select.expressions if is_generator_call(item.unalias())]
        if len(generators) == 1 and _is_plain(select):
            (item,) = generators
            names = _names(item, builder, tree if select is tree else None)
            if len(names) > 1 and _has_no_other_star(select, item):
                _move(select, item, names)
    return tree


def _is_plain(select: exp.Select) -> bool:
    """Return True if the SELECT list is evaluated for each row of FROM."""
    if select.args.get("from_") is None or any(select.args.get(part) for part in ("group", "having", "qualify", "windows")):
        return False
    return not any(item.find(exp.Window) or any(aggregate_calls(item)) for item in select.expressions)


def _has_no_other_star(select: exp.Select, item: exp.Expr) -> bool:
    """Return True if ``*`` is not in the SELECT list, or only once, just before the generator.

    In that place it will have the columns of LATERAL VIEW.
    """
    stars = [at for at, expression in enumerate(select.expressions) if isinstance(expression, exp.Star)]
    return not stars or (len(stars) == 1 and select.expressions[stars[0] + 1 :][:1] == [item])


def _names(item: exp.Expr, builder: Builder, whole: exp.Expr | None) -> Sequence[str]:
    """Return the names of a generator's columns; empty if they are not written and ``whole``, the query itself, is not given."""
    if isinstance(item, exp.Aliases):
        return [name.name for name in item.expressions]
    if isinstance(item, exp.Alias) or whole is None:
        return []
    alone = whole.copy()
    alone.set("expressions", [item.copy()])
    for part in ("order", "limit", "offset", "distinct"):
        alone.set(part, None)
    try:
        return [name for name, _ in builder.analyzer.columns(sql(alone))]
    except AnalysisFailed as error:
        raise NotIncremental(f"the columns of a generator could not be found: {error}", item) from error


def _move(select: exp.Select, item: exp.Expr, names: Sequence[str]) -> None:
    alias = f"__generated{len(select.args.get('laterals') or [])}"
    # Spark gives the columns these names too, so that both plans are the same.
    columns = [exp.to_identifier(name, quoted=True) for name in names]
    table = exp.TableAlias(this=exp.to_identifier(alias, quoted=True), columns=columns)
    call = (item.this if isinstance(item, exp.Aliases) else item).copy()
    select.append("laterals", exp.Lateral(this=call, view=True, alias=table))
    at = next(place for place, expression in enumerate(select.expressions) if expression is item)
    before = select.expressions[:at]
    # A star before the generator includes the columns of LATERAL VIEW, at its end.
    stars = [expression for expression in select.expressions if isinstance(expression, exp.Star)]
    shown = [exp.column(name, table=alias, quoted=True) for name in names] if not stars else []
    select.set("expressions", [*before, *shown, *select.expressions[at + 1 :]])
