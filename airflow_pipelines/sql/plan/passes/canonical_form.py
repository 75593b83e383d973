"""The canonical form of every value that a plan stores, or passes between relations (see ``sql/values/canonical_form.py``).

Values of relations are canonical, and so are columns that stages copy unchanged. Computed values are brought into canonical form
where they leave a stage, and where a stage adds up equal rows of its input. A view's columns are canonical by definition. Within a
query the change must not be visible: a query has no incremental rule if an expression in it could distinguish the representation
that a value has between two stages from the one that Spark gives it.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import cast

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.builder import Builder
from airflow_pipelines.sql.plan.expressions import function_name
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, KeyedSource
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.append_only_top_k import AppendOnlyTopK
from airflow_pipelines.sql.plan.ir.expression import Expression, LateralView, QueryExpression
from airflow_pipelines.sql.plan.ir.full import Full
from airflow_pipelines.sql.plan.ir.linear import Item, Linear, Scan, Select, UnionAll
from airflow_pipelines.sql.plan.ir.node import ColumnTypes, Node
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.plan.ir.to_sql import linear_to_sql
from airflow_pipelines.sql.plan.properties.representation import propagates_representation
from airflow_pipelines.sql.values.canonical_form import has_several_forms, has_visible_forms, in_canonical_form

_CHOOSING = frozenset({"any_value", "first", "first_value", "last", "last_value", "max", "min"})
"""Aggregates that return one of their arguments."""
_SUMMING = frozenset({"avg", "mean", "sum"})
"""Aggregates that never return a negative zero."""


def canonical_form(stages: tuple[Stage, ...], builder: Builder) -> tuple[Stage, ...]:
    """Return the stages of one view with canonical values only.

    :param stages: the stages in order; the last is the view's own
    :param builder: the plan, which answers about types and knows all relations that the stages read or make
    :raises NotIncremental: if an expression could distinguish a value's representations
    """
    one = _CanonicalForm(builder, dict(builder.noncanonical))
    return tuple(one.stage(stage, inner=stage is not stages[-1]) for stage in stages)


def canonical_query(query: str, columns: ColumnTypes) -> str:
    """Return a query with its columns, which are taken by position, in canonical form.

    :param query: Spark SQL
    :param columns: the names and types of the query's columns
    """
    if not any(has_several_forms(kind) for _, kind in columns):
        return query
    names = [f"__f{at}" for at in range(len(columns))]
    items = ", ".join(f"{in_canonical_form(own, kind)} AS {quote(name)}" for own, (name, kind) in zip(names, columns, strict=True))
    return f"SELECT {items} FROM ({query}) AS f({', '.join(names)})"


@dataclass(slots=True)
class _CanonicalForm:
    """The conversion of stages to canonical form, in the order of evaluation.

    :param changed: the columns of relations whose values may have another representation than Spark would give them
    """

    builder: Builder
    changed: dict[str, frozenset[str]]

    def stage(self, stage: Stage, *, inner: bool) -> Stage:
        node, changed = self._node(stage.node, stage.columns)
        if inner:
            names = [name for name, _ in stage.columns]
            self.changed[stage.relation] = frozenset(name for name, of in zip(names, _columns(stage), strict=True) if of in changed)
        return replace(stage, node=node)

    def _node(self, node: Node, columns: ColumnTypes) -> tuple[Node, Set[str]]:
        """Return the node with canonical results, and the columns for which Spark may give other representations."""
        match node:
            case Select() | UnionAll():
                canonical, changed = self._with_canonical_columns(node, [kind for _, kind in columns])
                return cast(Select | UnionAll, canonical), changed
            case Aggregate():
                return self._aggregate(node, columns)
            case AffectedKeys():
                return self._rewrite_affected_keys(node, columns)
            case AppendOnlyTopK():
                source, changed = self._with_canonical_columns(node.source)
                _check([node.rank, *node.keys], changed)
                return replace(node, source=source), changed
            case Full():
                return replace(node, query=canonical_query(node.query, columns)), columns_with_visible_forms(columns)
            case _:
                raise TypeError(f"no rule for a {type(node).__name__}; a recursion is made of stages that are canonical already")

    def _read(self, node: Linear) -> Set[str]:
        """Return the columns of a node that propagate other representations than Spark's; check the node's expressions."""
        match node:
            case Scan():
                return self.changed.get(node.relation, frozenset()) & set(node.columns)
            case UnionAll():
                parts = [(part.columns, self._read(part)) for part in node.parts]
                at = {place for names, changed in parts for place, name in enumerate(names) if name in changed}
                return {name for place, name in enumerate(node.columns) if place in at}
            case Select():
                changed: set[str] = set()
                for source in node.sources:
                    changed |= self._read(source.node)
                if not changed:
                    return changed
                for lateral in node.laterals:
                    changed |= _find_unnested_columns(lateral, changed)
                _check([node.where] if node.where else [], changed)
                return {item.name for item in node.items if propagates_representation(item.text.parse(), changed)}

    def _with_canonical_columns(self, node: Linear, kinds: Sequence[str] | None = None) -> tuple[Linear, Set[str]]:
        """Return the node with canonical columns, and the columns for which Spark may give other representations.

        :param kinds: the types of the node's columns; None to ask for them when they matter
        """
        changed = self._read(node)
        if kinds is not None and not any(map(has_several_forms, kinds)):
            return node, changed
        match node:
            case Scan():
                return node, changed
            case UnionAll():
                parts = [self._with_canonical_columns(part) for part in node.parts]
                at = {place for part, names in parts for place, name in enumerate(part.columns) if name in names}
                there = {name for place, name in enumerate(node.columns) if place in at}
                return replace(node, parts=tuple(part for part, _ in parts)), there
            case Select():
                stored = _find_stored_columns(node)
                computed = {item.name for item in node.items if item.name not in stored}
                if not computed:
                    return node, changed
                all_kinds = kinds if kinds is not None else [kind for _, kind in self.builder.types(linear_to_sql(node))]
                types = dict(zip(node.columns, all_kinds, strict=True))
                items = tuple(_canonical_item(item, types[item.name]) if item.name in computed else item for item in node.items)
                return replace(node, items=items), changed | {name for name in computed if has_visible_forms(types[name])}

    def _aggregate(self, node: Aggregate, columns: ColumnTypes) -> tuple[Aggregate, Set[str]]:
        if node.is_linear:
            # With accumulators, the rows of the input are only added up by group.
            block, changed = node.input, self._read(node.input)
        else:
            canonical, changed = self._with_canonical_columns(node.input, node.input_types or None)
            block = cast(Select, canonical)
        _check([key.text for key in node.keys], changed)
        calls = {call.name for call in node.calls if changed and propagates_representation(call.text.parse(), changed)}
        _check([node.having] if node.having else [], calls)
        types = dict(zip(node.columns, (kind for _, kind in columns), strict=True))
        keys = {key.name for key in node.keys}
        # Grouping gives the keys in canonical form.
        items = tuple(item if item.text in keys else _canonical_item(item, types[item.name]) for item in node.items)
        handing_on = {item.name for item in node.items if calls and propagates_representation(item.text.parse(), calls)}
        computed = {item.name for item in node.items if has_visible_forms(types[item.name]) and not self._is_canonical(node, item)}
        return replace(node, input=block, items=items), handing_on | computed

    def _is_canonical(self, node: Aggregate, item: Item) -> bool:
        """Return True if Spark itself gives a column of an aggregate in canonical form."""
        if any(item.text == key.name for key in node.keys):
            return True
        call = next((call.text.parse() for call in node.calls if call.name == item.text), None)
        while isinstance(call, exp.Filter):
            call = call.this
        name = function_name(call) if call is not None else None
        return name in _SUMMING or (name in _CHOOSING and call is not None and isinstance(call.this, exp.Column))

    def _rewrite_affected_keys(self, node: AffectedKeys, columns: ColumnTypes) -> tuple[AffectedKeys, Set[str]]:
        changed: set[str] = set()
        sources = []
        for source in node.sources:
            inner, names = self._with_canonical_columns(source.node)
            sources.append(KeyedSource(source.alias, inner, source.keys))
            changed |= names
            _check(source.keys, names)
        if not changed and not any(has_several_forms(kind) for _, kind in columns):
            return replace(node, sources=tuple(sources)), changed
        tree = node.query.parse()
        seen = propagates_representation(tree, changed) if changed else False
        passed = _find_passed_columns(tree, node, changed)
        named = tuple(zip(node.columns, (kind for _, kind in columns), strict=True))
        computed = [name for name, kind in named if has_several_forms(kind) and name not in passed]
        query = node.query
        if computed:
            items = ", ".join(
                f"{in_canonical_form(quote(name), kind) if name in computed else quote(name)} AS {quote(name)}"
                for name, kind in named
            )
            query = QueryExpression(f"SELECT {items} FROM ({node.query}) AS f({', '.join(map(quote, node.columns))})")
        canonical = {name for name in passed if passed[name]} if seen else set()
        visible = {name for name, kind in named if has_visible_forms(kind)}
        return replace(node, sources=tuple(sources), query=query), visible & {*computed, *canonical}


def _columns(stage: Stage) -> tuple[str, ...]:
    """Return the names of a stage's columns in its node."""
    match stage.node:
        case Select() | UnionAll() | Aggregate() | AffectedKeys() | AppendOnlyTopK():
            return stage.node.columns
        case _:
            return tuple(name for name, _ in stage.columns)


def columns_with_visible_forms(columns: ColumnTypes) -> frozenset[str]:
    """Return the columns whose values have several representations that functions can distinguish."""
    return frozenset(name for name, kind in columns if has_visible_forms(kind))


def _find_stored_columns(node: Linear) -> Set[str]:
    """Return the columns of a node that are unchanged columns of relations, which are canonical."""
    match node:
        case Scan():
            return frozenset(node.columns)
        case UnionAll():
            parts = [(part.columns, _find_stored_columns(part)) for part in node.parts]
            return {name for at, name in enumerate(node.columns) if all(columns[at] in stored for columns, stored in parts)}
        case Select():
            sources = {source.alias: _find_stored_columns(source.node) for source in node.sources}
            items = ((item.name, _source_column(item.text)) for item in node.items)
            return {name for name, column in items if column is not None and column[1] in sources.get(column[0], frozenset())}


def _source_column(expression: Expression) -> tuple[str, str] | None:
    """Return the source and the column of an expression that is just ``source.column``, or None for any other one."""
    tree = expression.parse()
    if isinstance(tree, exp.Column) and len(tree.parts) == 2 and isinstance(tree.this, exp.Identifier):
        return tree.table, tree.name
    return None


def _find_passed_columns(tree: exp.Expr, node: AffectedKeys, changed: Set[str]) -> dict[str, bool]:
    """Return the columns of a keyed query that are columns of its sources, each with True if it has another representation."""
    if not isinstance(tree, exp.Select) or len(tree.expressions) != len(node.columns):
        return {}
    aliases = {source.alias for source in node.sources}
    passed = {}
    for name, item in zip(node.columns, tree.expressions, strict=True):
        column = item.unalias()
        if isinstance(column, exp.Column) and column.table in aliases:
            passed[name] = column.name in changed
    return passed


def _canonical_item(item: Item, kind: str) -> Item:
    return Item(item.name, Expression(in_canonical_form(item.text, kind)))


def _check(expressions: Sequence[Expression], changed: Set[str]) -> None:
    """Refuse expressions that depend on the representation of a changed column.

    :raises NotIncremental: if one does
    """
    for expression in expressions if changed else ():
        propagates_representation(expression.parse(), changed)


def _find_unnested_columns(lateral: LateralView, changed: Set[str]) -> set[str]:
    """Return the columns that a LATERAL VIEW clause makes from changed ones."""
    tree = lateral.parse()
    if not propagates_representation(tree.this, changed):
        return set()
    return {column.name for column in tree.args["alias"].columns} or {"col", "pos", "key", "value"}
