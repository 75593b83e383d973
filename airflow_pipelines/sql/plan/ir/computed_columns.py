"""The split of a block over one relation into the columns that it passes on unchanged and those that Spark has to compute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from airflow_pipelines.sql.plan.ir.expression import Expression, columns_in
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Scan, Select


@dataclass(frozen=True, slots=True)
class ComputedColumns:
    """A block over one relation.

    :param relation: the relation
    :param passed: the columns that are passed on unchanged: their names in the relation by their names in the block
    :param block: the block with its other columns only; None if each row of the relation gives one row of passed columns
    :param may_grow: True if the block may give many rows for one
    """

    relation: str
    passed: Mapping[str, str]
    block: Select | None
    may_grow: bool = False

    @property
    def read(self) -> tuple[str, ...]:
        """The columns of the relation that Spark needs."""
        return () if self.block is None else _find_scan(self.block).columns


@lru_cache(maxsize=1024)
def computed_columns(node: Linear) -> ComputedColumns | None:
    """Return the columns that a node computes, or None if it joins or adds relations.

    :param node: the node
    """
    match node:
        case Scan():
            return ComputedColumns(node.relation, {name: name for name in node.columns}, None)
        case Select() if _is_chain(node):
            passed = _find_passed_columns(node)
            items = tuple(item for item in node.items if item.name not in passed)
            block = _narrow(node, items) if items or _changes_rows(node) else None
            (relation,) = node.reads
            return ComputedColumns(relation, passed, block, _may_grow(node))
        case _:
            return None


def _is_chain(node: Linear) -> bool:
    """Return True if the node is a chain of blocks down to one relation, without duplicate column names."""
    if not isinstance(node, Select):
        return isinstance(node, Scan)
    return (
        len(node.sources) == 1
        and not node.temporal_filters
        and len(set(node.columns)) == len(node.columns)
        and _is_chain(node.sources[0].node)
    )


def _find_scan(node: Linear) -> Linear:
    """Return the relation at the end of a chain of blocks."""
    return _find_scan(node.sources[0].node) if isinstance(node, Select) else node


def _names(node: Select) -> dict[Expression, str]:
    """Return the columns of a block's source by their texts in the block."""
    source = node.sources[0]
    return {Expression.column(source.alias, name): name for name in source.node.columns}


def _find_passed_columns(node: Linear) -> dict[str, str]:
    if not isinstance(node, Select):
        return {name: name for name in node.columns}
    names, below = _names(node), _find_passed_columns(node.sources[0].node)
    passed = {item.name: names[item.text] for item in node.items if item.text in names}
    return {name: below[column] for name, column in passed.items() if column in below}


def _changes_rows(node: Linear) -> bool:
    """Return True if a block filters or unnests, or computes an expression, which may unnest as well."""
    if not isinstance(node, Select):
        return False
    names = _names(node)
    computes = any(item.text not in names for item in node.items)
    return computes or bool(node.filter or node.laterals) or _changes_rows(node.sources[0].node)


def _may_grow(node: Linear) -> bool:
    if not isinstance(node, Select):
        return False
    several = bool(node.laterals) or any(item.text.may_give_several_rows for item in node.items)
    return several or _may_grow(node.sources[0].node)


def _narrow(node: Select, items: tuple[Item, ...]) -> Select:
    """Return a block with some of its columns, over blocks and a relation with the columns that it reads.

    Blocks below keep all columns that they compute, because these may unnest.
    """
    (source,) = node.sources
    read = [*(item.text for item in items), *([node.filter] if node.filter else []), *node.laterals]
    needed = tuple(columns_in(read, source.node.columns))
    inner = source.node
    if isinstance(inner, Scan):
        inner = replace(inner, columns=needed)
    elif isinstance(inner, Select):
        names, wanted = _names(inner), frozenset(needed)
        inner = _narrow(inner, tuple(item for item in inner.items if item.name in wanted or item.text not in names))
    return replace(node, sources=(replace(source, node=inner),), items=items, where=node.filter)
