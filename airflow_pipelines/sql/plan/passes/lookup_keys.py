"""A pass that derives the columns by which the rows with some keys can be looked up, for operators that evaluate affected keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.expression import Expression
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan
from airflow_pipelines.sql.plan.ir.lookup import Lookup
from airflow_pipelines.sql.plan.ir.markers import Marker
from airflow_pipelines.sql.plan.ir.node import Node
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.properties.base_columns import base_column, column_name, columns_read


def derive_lookup_keys(stage: Stage, _markers: Mapping[str, Marker]) -> Stage:
    """Add the lookups of a stage's keys to its node.

    :param stage: a stage that no pass changes any more
    """
    return replace(stage, node=_with_lookups(stage, stage.node))


def _with_lookups(stage: Stage, node: Node) -> Node:
    match node:
        case AffectedKeys():
            kinds = node.key_types
            own = Scan(stage.relation, tuple(name for name, _ in stage.columns))
            sources = tuple(replace(source, lookup=lookup(source.node, source.keys, kinds)) for source in node.sources)
            return replace(node, sources=sources, remembered_lookup=lookup(own, node.remembered, kinds))
        case Aggregate() if not node.is_linear:
            return replace(node, lookup=lookup(node.input, [key.text for key in node.keys], node.key_types))
        case AppendOnlyTopK():
            typed = zip(node.keys, node.key_types, strict=True)
            return replace(node, key_columns=tuple(column_name(key, kind=kind) for key, kind in typed))
        case _:
            return node


def lookup(node: Linear, keys: Sequence[Expression], kinds: Sequence[str]) -> Lookup | None:
    """Return the lookup of the rows of a node with some keys.

    :param node: a linear node
    :param keys: the keys over the node's columns by their bare names
    :param kinds: the types of the keys; casts to them do not count
    :returns: None if no part of the key is a column of a relation
    """
    names = [column_name(key, kind=kind) for key, kind in zip(keys, kinds, strict=False)]
    columns = [base_column(node, name) if name is not None else None for name in names]
    relation = next((column[0] for column in columns if column is not None), None)
    if relation is None:
        return None
    return Lookup(relation, tuple(None if column is None else column[1] for column in columns), columns_read(node, relation))
