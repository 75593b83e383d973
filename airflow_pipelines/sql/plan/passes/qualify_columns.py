"""A pass that qualifies a query's columns with their sources and expands its stars."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import NotIncremental, substitute
from airflow_pipelines.sql.plan.passes.full_joins_using import SharedColumns, derive_full_join
from airflow_pipelines.sql.syntax.dialect import PipelineSpark

_SHARED = "shared"
"""The mark of a join in which USING or NATURAL merges columns."""


def qualify_columns(tree: exp.Expr, builder: Builder) -> exp.Expr:
    """Give every column its source, and every ``*`` its columns.

    :param tree: a query that Spark accepts; it is changed
    :param builder: the plan, which knows the columns of all relations that the query may read
    :returns: the qualified tree
    :raises NotIncremental: if a name cannot be resolved
    """
    # Types do not matter for resolving names, and Spark writes some that sqlglot does not know.
    known: dict[str, object] = {name: {column: "unknown" for column, _ in columns} for name, columns in builder.relations.items()}
    dialect = PipelineSpark(normalization_strategy="case_sensitive")
    try:
        _note_shared_columns(tree)
        schema = MappingSchema(known, dialect=dialect, normalize=False)
        tree = qualify(tree, schema=schema, dialect=dialect, validate_qualify_columns=True, quote_identifiers=True)
    except Exception as error:
        # Besides its own errors, sqlglot raises ValueError, KeyError and the like for unexpected input. Spark has
        # accepted the query, so that an error of sqlglot only rules out symbolic resolution.
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise NotIncremental(f"names could not be resolved symbolically: {first}") from error
    _resolve_shared_columns(tree)
    return tree


def _note_shared_columns(tree: exp.Expr) -> None:
    """Mark the joins whose conditions sqlglot is going to make from USING or NATURAL."""
    for join in tree.find_all(exp.Join):
        if join.args.get("using") or (join.args.get("method") or "").upper() == "NATURAL":
            join.meta[_SHARED] = True


def _resolve_shared_columns(tree: exp.Expr) -> None:
    """Take the column of USING and NATURAL joins from the side that Spark takes it from.

    sqlglot reads it as COALESCE of all sides. The parser keeps functions as they are written, so that every ``Coalesce`` in the
    tree is one of these.
    """
    for select in list(tree.find_all(exp.Select)):
        shared: dict[str, exp.Expr] = {}
        made: list[SharedColumns] = []
        joins = select.args.get("joins") or []
        for number, join in enumerate(joins, 1):
            if join.meta.get(_SHARED):
                _share(join, shared)
                if (join.side or "").upper() == "FULL" and any(later.meta.get(_SHARED) for later in joins[number:]):
                    made.append(SharedColumns(number, dict(shared)))
        for call in [call for call in select.find_all(exp.Coalesce) if call.find_ancestor(exp.Select) is select]:
            column = shared.get(call.this.name)
            if column is not None and {part.table for part in call.find_all(exp.Column)} >= {
                part.table for part in column.find_all(exp.Column)
            }:
                call.replace(column.copy())
        for at, part in enumerate(made):
            # The first of the remaining joins reads the previous derived table.
            before = made[at - 1] if at else SharedColumns(0)
            names: dict[exp.Expr, exp.Expr] = {
                tree: exp.column(name, table=f"__full{at}", quoted=True) for name, tree in before.columns.items()
            }
            columns = {name: substitute(tree, names) for name, tree in part.columns.items()}
            derive_full_join(select, SharedColumns(part.number - before.number, columns), f"__full{at + 1}")


def _share(join: exp.Join, shared: dict[str, exp.Expr]) -> None:
    """Add a join with USING: update ``shared``, the merged columns, and write the join's condition in their terms."""
    pairs = [part.unnest() for part in join.args["on"].flatten()] if isinstance(join.args["on"], exp.And) else [join.args["on"]]
    conditions = []
    for pair in pairs:
        own = pair.expression
        before = shared.get(own.name, pair.this)
        conditions.append(exp.EQ(this=before.copy(), expression=own.copy()))
        side = (join.side or "").upper()
        if side == "RIGHT":
            shared[own.name] = own.copy()
        elif side == "FULL":
            shared[own.name] = exp.Coalesce(this=before.copy(), expressions=[own.copy()])
        else:
            shared[own.name] = before.copy()
    join.set("on", exp.and_(*conditions, copy=False))
