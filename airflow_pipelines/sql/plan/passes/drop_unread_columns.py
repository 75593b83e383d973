"""A pass that drops columns of keyed stages that nothing reads, such as those that only the condition of an outer join needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.expression import QueryExpression, columns_in
from airflow_pipelines.sql.plan.ir.linear import Linear, Scan, Select, UnionAll
from airflow_pipelines.sql.plan.ir.stage import Stage


def drop_unread_columns(stages: tuple[Stage, ...], _builder: Builder) -> tuple[Stage, ...]:
    """Drop the columns of keyed stages that no later stage reads, where no stage reads their rows again.

    Rows that differ in such columns alone become equal. Readers of their deltas lose nothing: each row counts as often as before.

    :param stages: the stages of one view, in order
    """
    narrowed: dict[str, tuple[str, ...]] = {}
    kept = []
    for at, stage in enumerate(stages):
        node = stage.node
        if isinstance(node, Aggregate) and node.reads & narrowed.keys():
            stage = replace(stage, node=replace(node, input=_reading(node.input, narrowed)))
        elif isinstance(node, AffectedKeys):
            columns = _read(stage, node, stages[at + 1 :])
            if len(columns) < len(stage.columns):
                narrowed[stage.relation] = columns
                stage = _narrow(stage, node, columns)
        kept.append(stage)
    return tuple(kept)


def _read(stage: Stage, node: AffectedKeys, later: tuple[Stage, ...]) -> tuple[str, ...]:
    """Return the columns of a stage that later stages read, or all if that is not certain or others may be needed."""
    everything = tuple(name for name, _ in stage.columns)
    readers = [one for one in later if stage.relation in one.reads | one.rereads]
    if node.remembered or not node.key_types or not readers:
        return everything
    read: set[str] = set()
    for reader in readers:
        if not isinstance(reader.node, Aggregate) or stage.relation in reader.rereads:
            return everything
        for block in _find_readers(reader.node.input, stage.relation):
            if block is None:
                return everything
            expressions = [*(item.text for item in block.items), *([block.where] if block.where else []), *block.laterals]
            read |= set(columns_in(expressions, everything))
    return tuple(name for name in everything if name in read) or everything[:1]


def _find_readers(node: Linear, relation: str) -> Iterator[Select | None]:
    """Yield each block that scans a relation, and None for a scan whose columns are all passed on."""
    match node:
        case Scan():
            if node.relation == relation:
                yield None
        case UnionAll():
            for part in node.parts:
                yield from _find_readers(part, relation)
        case Select():
            if any(isinstance(source.node, Scan) and source.node.relation == relation for source in node.sources):
                yield node
            for source in node.sources:
                if not isinstance(source.node, Scan):
                    yield from _find_readers(source.node, relation)


def _narrow(stage: Stage, node: AffectedKeys, columns: tuple[str, ...]) -> Stage:
    """Return a keyed stage that gives some of its columns; Spark computes no others of its query."""
    items = ", ".join(map(quote, columns))
    query = QueryExpression(f"SELECT {items} FROM ({node.query}) AS `__all`({', '.join(map(quote, node.columns))})")
    kinds = tuple((name, kind) for name, kind in stage.columns if name in columns)
    return replace(stage, node=replace(node, query=query, columns=columns), columns=kinds)


def _reading(node: Select, narrowed: Mapping[str, tuple[str, ...]]) -> Select:
    """Return a block that scans only the remaining columns of relations."""
    return replace(node, sources=tuple(replace(source, node=_drop_from_scans(source.node, narrowed)) for source in node.sources))


def _drop_from_scans(node: Linear, narrowed: Mapping[str, tuple[str, ...]]) -> Linear:
    match node:
        case Scan():
            return replace(node, columns=narrowed.get(node.relation, node.columns))
        case UnionAll():
            return replace(node, parts=tuple(_drop_from_scans(part, narrowed) for part in node.parts))
        case Select():
            return _reading(node, narrowed)
