"""A printer of nodes as ordinary queries without weights, for the analyzer."""

from __future__ import annotations

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select, UnionAll
from airflow_pipelines.sql.plan.ir.node import Node


def to_sql(node: Node | Linear) -> str:
    """Return the node's query over the relations themselves.

    :param node: any node
    :raises ValueError: if the node is a recursion, which reads its own result, so that no query can express it
    """
    match node:
        case Aggregate():
            return aggregate_to_sql(node)
        case AffectedKeys():
            return keyed_to_sql(node)
        case AppendOnlyTopK():
            return top_k_over(node, linear_to_sql(node.source))
        case Full():
            return node.query
        case Scan() | Select() | UnionAll():
            return linear_to_sql(node)
        case _:
            raise ValueError(f"a {type(node).__name__} node has no plain query, such as one that reads its own result")


def linear_to_sql(node: Linear) -> str:
    """Return the node's query over the relations themselves."""
    match node:
        case Scan():
            return f"SELECT {', '.join(map(quote, node.columns))} FROM {quote(node.relation)}"
        case UnionAll():
            parts = " UNION ALL ".join(f"({linear_to_sql(part)})" for part in node.parts)
            return f"SELECT * FROM ({parts}) AS u({', '.join(map(quote, node.columns))})"
        case Select():
            items = ", ".join(f"{item.text} AS {quote(item.name)}" for item in node.items) or "1 AS `__one`"
            sources = " CROSS JOIN ".join(f"({linear_to_sql(source.node)}) AS {quote(source.alias)}" for source in node.sources)
            laterals = "".join(f" {lateral}" for lateral in node.laterals)
            return f"SELECT {items} FROM {sources}{laterals}" + (f" WHERE {node.where}" if node.where else "")


def aggregate_to_sql(node: Aggregate) -> str:
    """Return the node's query over the relations themselves."""
    items = ", ".join(f"{item.text} AS {quote(item.name)}" for item in node.items)
    having = f" WHERE {node.having}" if node.having else ""
    return f"SELECT {items} FROM ({groups_over(node, linear_to_sql(node.input))}){having}"


def keyed_to_sql(node: AffectedKeys) -> str:
    """Return the node's query over the relations themselves."""
    sources = ", ".join(f"{quote(source.alias)} AS ({linear_to_sql(source.node)})" for source in node.sources)
    return f"WITH {sources} SELECT * FROM ({node.query}) AS q({', '.join(map(quote, node.columns))})"


def top_k_over(node: AppendOnlyTopK, rows: str) -> str:
    """Return the query for the first rows per key of a query's rows.

    :param node: the node that ranks the rows
    :param rows: the query
    """
    places = f"SELECT *, {node.rank} AS {quote(node.place)} FROM ({rows})"
    return f"SELECT {', '.join(map(quote, node.columns))} FROM ({places}) WHERE {quote(node.place)} <= {node.most}"


def groups_over(node: Aggregate, rows: str) -> str:
    """Return a query for keys and calls of every group, by their names, over a query for the input's rows with multiplicity.

    :param node: the node that groups the rows
    :param rows: the query
    """
    keys = [f"{key.text} AS {key.name}" for key in node.keys]
    calls = [f"{call.text} AS {call.name}" for call in node.calls]
    group = f" GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
    return f"SELECT {', '.join([*keys, *calls]) or 'COUNT(*) AS __rows'} FROM ({rows}){group}"
