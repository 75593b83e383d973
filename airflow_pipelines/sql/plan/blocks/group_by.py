"""Plans of GROUP BY and HAVING: the keys, calls and accumulators of an aggregate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.blocks.distinct_calls import aggregate_with_distinct, by_distinct_values
from airflow_pipelines.sql.plan.blocks.grouping_sets import grouping_sets, in_sets, is_session, over_sets
from airflow_pipelines.sql.plan.blocks.groups import Groups, Outputs, one_aggregate, with_rereadable_input
from airflow_pipelines.sql.plan.blocks.query_blocks import Block, is_key_type
from airflow_pipelines.sql.plan.blocks.session_totals import session_totals
from airflow_pipelines.sql.plan.expressions import NotIncremental, distinct, is_generator, require_row_or_group
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, KeyedSource, Shape
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.expression import QueryExpression
from airflow_pipelines.sql.plan.ir.linear import Select
from airflow_pipelines.sql.plan.ir.to_sql import groups_over
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls


def groups_of(tree: exp.Select, outputs: Outputs, above: Sequence[exp.Expr]) -> Groups | None:
    """Return the grouping of a SELECT.

    :param tree: the SELECT
    :param outputs: its SELECT list
    :param above: all expressions that are evaluated per group
    :returns: None if the SELECT does not group
    """
    group = tree.args.get("group")
    calls = distinct(call for part in above for call in aggregate_calls(part))
    if group is None and not calls and tree.args.get("having") is None:
        return None
    keys, sets = grouping_sets(group, [item for _, item in outputs])
    for part in [*keys, *(argument for call in calls for argument in call.iter_expressions())]:
        require_row_or_group(part)
    return Groups(keys, calls, sets)


def expand_grouping_sets(block: Block, groups: Groups) -> tuple[Groups, Callable[[exp.Expr], exp.Expr]]:
    """Repeat each row of a block once per grouping set.

    :param block: the rows; it is changed
    :param groups: the grouping, with its sets
    :returns: the grouping of the repeated rows, and a function that rewrites the expressions above for it
    """
    alias = block.builder.name("s")
    block.required = block.required | {(alias, "n")}
    numbers = ", ".join(str(at) for at in range(len(groups.sets)))
    block.laterals.append(f"LATERAL VIEW EXPLODE(ARRAY({numbers})) {quote(alias)} AS `n`")
    block.add_columns(alias, ["n"])
    number = exp.column("n", table=alias, quoted=True)
    keys = [number, *in_sets(groups.keys, groups.sets, number)]
    return Groups(distinct(keys), groups.calls), lambda tree: over_sets(tree, groups.keys, groups.sets, number)


def aggregate(block: Block, groups: Groups, outputs: Outputs, having: exp.Expr | None) -> Aggregate | AffectedKeys | Select:
    """Plan an aggregate.

    :param block: the rows
    :param groups: keys and calls
    :param outputs: the SELECT list, over keys and calls
    :param having: the condition of HAVING, if there is one
    :returns: the node that gives ``outputs`` for each group for which ``having`` holds
    """
    above = [item for _, item in outputs] + ([having] if having is not None else [])
    for part in above:
        require_row_or_group(part)
        if is_generator(part):
            # An aggregate's items are evaluated inside CASE, where Spark does not allow generators.
            raise NotIncremental("a generator over an aggregate has no incremental rule yet", part)
    node = one_aggregate(block, groups, outputs, having)
    sessions = [key for key in groups.keys if is_session(key)]
    if sessions:
        return _sessions(block, node, sessions[0])
    by_value = by_distinct_values(node, groups.calls)
    if by_value is not None:
        return aggregate_with_distinct(block, groups, by_value, outputs, having)
    return with_rereadable_input(block, node)


def _sessions(block: Block, node: Aggregate, session: exp.Expr) -> AffectedKeys:
    """Plan groups by the key ``session``, a ``session_window``: a session depends on all rows with the same other keys."""
    typed = zip(node.keys, node.key_types, strict=True)
    keyed = [(key.text, kind) for key, kind in typed if "session_window(" not in key.text.lower() and is_key_type(kind)]
    source = block.builder.name("s")
    columns = ", ".join(quote(item.name) for item in node.input.items)
    items = ", ".join(f"{item.text} AS {quote(item.name)}" for item in node.items)
    having = f" WHERE {node.having}" if node.having else ""
    query = QueryExpression(f"SELECT {items} FROM ({groups_over(node, f'SELECT {columns} FROM {quote(source)}')}){having}")
    rows = KeyedSource(source, block.builder.rereadable(node.input), tuple(key for key, _ in keyed))
    # The keys by which rows are found have to be those by which they are grouped.
    totals = session_totals(node) if len(keyed) == len(node.keys) - 1 else None
    # Only without other keys may all rows belong to one session.
    reason = None if keyed else block.builder.places.reason("without another key any row may join two sessions", session)
    kinds = tuple(kind for _, kind in keyed)
    return AffectedKeys((rows,), query, node.columns, kinds, Shape.WINDOW, reason=reason, session_totals=totals)


def materialize_groups(block: Block, groups: Groups, having: exp.Expr | None) -> dict[exp.Expr, exp.Expr]:
    """Replace a block by its groups, for expressions over them: window functions, subqueries, generators.

    :param block: the rows; it is changed
    :param groups: the grouping
    :param having: the condition of HAVING, if there is one
    :returns: the mapping from the query's keys and calls to their replacements in the expressions above
    """
    alias = block.builder.name("g")
    trees = [*groups.keys, *groups.calls]
    names = [f"g{at}" for at in range(len(trees))]
    outputs = list(zip(names, trees, strict=True)) or [("g0", exp.Literal.number(1))]
    scan = block.builder.stage(aggregate(block, groups, outputs, having))
    block.required = block.required | {(alias, name) for name in names}
    block.replace_by(scan, {(alias, name): name for name in names})
    return {tree: exp.column(name, table=alias, quoted=True) for name, tree in zip(names, trees, strict=True)}
