"""Plans of UNION, INTERSECT, EXCEPT and DISTINCT: sums of relations, and groups of equal rows with one count per side."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_pipelines.sql.plan.blocks.accumulators import Accumulators, LinearCall
from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate, Call
from airflow_pipelines.sql.plan.ir.expression import Expression, LateralView
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Select, Source, UnionAll
from airflow_pipelines.sql.plan.ir.node import ColumnTypes
from airflow_pipelines.sql.plan.ir.to_sql import linear_to_sql


def union_all(builder: Builder, parts: Sequence[Linear]) -> UnionAll:
    """Return the sum of nodes, with the first one's column names.

    :param builder: the plan
    :param parts: the nodes, all with the same number of columns
    """
    # Spark widens types pair by pair from the left, and so do nested unions here. Each part's types are queried separately: in
    # a chain of unions Spark would otherwise analyze all parts on the left again for each part.
    kinds = [_kinds(builder, part) for part in parts]
    if any(other != kinds[0] for other in kinds[1:]):
        rows = (", ".join(f"CAST(NULL AS {kind})" for kind in part) for part in kinds)
        kinds[0] = [kind for _, kind in builder.types(" UNION ALL ".join(f"(SELECT {row})" for row in rows))]
    return UnionAll(tuple(parts), tuple(zip(parts[0].columns, kinds[0], strict=True)))


def _kinds(builder: Builder, node: Linear) -> list[str]:
    types = node.types if isinstance(node, UnionAll) else builder.types(linear_to_sql(node))
    return [kind for _, kind in types]


def distinct(builder: Builder, node: Linear) -> Aggregate:
    """Return each distinct row of a node once.

    :param builder: the plan
    :param node: the rows
    """
    return _group_rows(node, builder.types(linear_to_sql(node)), (), Accumulators(), None)


def intersect(builder: Builder, left: Linear, right: Linear) -> Aggregate:
    """Return the distinct rows that are in both nodes.

    :param builder: the plan
    :param left: one node
    :param right: the other node, with the same number of columns
    """
    return _group_by_sides(builder, left, right, "{l} > 0 AND {r} > 0")


def except_(builder: Builder, left: Linear, right: Linear) -> Aggregate:
    """Return the distinct rows of the left node that are not in the right one.

    :param builder: the plan
    :param left: the rows
    :param right: the rows to leave out
    """
    return _group_by_sides(builder, left, right, "{l} > 0 AND {r} = 0")


def intersect_all(builder: Builder, left: Linear, right: Linear) -> Select:
    """Return the rows that are in both nodes, each as often as in the node that has fewer copies of it.

    :param builder: the plan
    :param left: one node
    :param right: the other node, with the same number of columns
    """
    return _repeat_rows(builder, _group_by_sides(builder, left, right, "{l} > 0 AND {r} > 0", copies="LEAST({l}, {r})"))


def except_all(builder: Builder, left: Linear, right: Linear) -> Select:
    """Return each row of the left node as many times as it has more copies of it than the right one.

    :param builder: the plan
    :param left: the rows
    :param right: the rows to leave out
    """
    return _repeat_rows(builder, _group_by_sides(builder, left, right, "{l} > {r}", copies="{l} - {r}"))


def _group_by_sides(builder: Builder, left: Linear, right: Linear, having: str, copies: str | None = None) -> Aggregate:
    """Group the equal rows of both nodes; ``having`` and ``copies`` are over the sides' counts ``{l}`` and ``{r}``."""
    both = union_all(builder, [_tag_side(left, 0), _tag_side(right, 1)])
    columns = both.types[:-1]
    accumulators = Accumulators()
    tag = f"__c{len(columns)}"
    calls = []
    for side in (0, 1):
        value = accumulators.value(LinearCall("count_if", (f"{tag} = {side}",), None), ("boolean",), "bigint")
        calls.append(
            Call(f"__r{side}", Expression(f"COUNT_IF({tag} = {side})"), "bigint", value.text if value is not None else None)
        )
    counts = {"l": "__r0", "r": "__r1"}
    extra = () if copies is None else (Item("__copies", Expression(copies.format(**counts))),)
    return _group_rows(both, columns, tuple(calls), accumulators, Expression(having.format(**counts)), extra)


def _tag_side(node: Linear, side: int) -> Select:
    items = [Item(f"c{at}", Expression.column("s", name)) for at, name in enumerate(node.columns)]
    # The left side's names are the result's.
    items = [Item(name, item.text) for name, item in zip(node.columns, items, strict=True)]
    return Select((Source("s", node),), (*items, Item("__side", Expression(side))))


def _group_rows(
    node: Linear,
    columns: ColumnTypes,
    calls: tuple[Call, ...],
    accumulators: Accumulators,
    having: Expression | None,
    extra: tuple[Item, ...] = (),
) -> Aggregate:
    block = Select(
        (Source("s", node),), tuple(Item(f"__c{at}", Expression.column("s", name)) for at, name in enumerate(node.columns))
    )
    keys = tuple(Item(f"__k{at}", Expression(f"__c{at}")) for at in range(len(columns)))
    items = tuple(Item(name, Expression(f"__k{at}")) for at, (name, _) in enumerate(columns))
    types = tuple(kind for _, kind in columns)
    inputs = (*types, "int") if len(node.columns) > len(columns) else types
    return Aggregate(block, keys, types, calls, tuple(accumulators.accumulators), (*items, *extra), having, inputs)


def _repeat_rows(builder: Builder, counted: Aggregate) -> Select:
    """Repeat each row as often as its column ``__copies`` says."""
    scan = builder.stage(counted)
    items = tuple(Item(name, Expression.column("s", name)) for name in scan.columns if name != "__copies")
    return Select(
        (Source("s", scan),), items, None, (LateralView("LATERAL VIEW EXPLODE(ARRAY_REPEAT(0, INT(`s`.__copies))) AS `__n`"),)
    )
