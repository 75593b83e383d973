"""Waterlines: the value of a column below which a relation's rows can never change again.

A waterline is SQL text over the waterlines of the columns that were declared with LATENESS. All rules are conservative: an
expression that is not known to have a waterline has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import Any

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.rows.expressions.time_windows import fixed_length
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.expression import Expression, WhereClause
from airflow_pipelines.sql.plan.ir.linear import Scan, Select, UnionAll
from airflow_pipelines.sql.plan.ir.markers import waterline_input
from airflow_pipelines.sql.plan.ir.stage import Stage
from airflow_pipelines.sql.syntax.dialect import DIALECT, SyntaxFailure

Known = Mapping[str, str]
"""The waterline of each column that has one, as text; bounds of windows are named by :func:`_bound_of`."""
_BOUNDS = ("start", "end")

_MONOTONE = frozenset(
    {
        "ceil", "ceiling", "date", "date_trunc", "floor", "to_date", "trunc", "unix_date", "unix_micros", "unix_millis",
        "unix_seconds", "year",
    }
)  # fmt: skip
"""Functions that are monotone in their one argument that is not constant."""
_KEPT_TYPES = frozenset(
    {
        exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ,
        exp.DataType.Type.TIMESTAMPNTZ, exp.DataType.Type.BIGINT, exp.DataType.Type.INT, exp.DataType.Type.DECIMAL,
        exp.DataType.Type.DOUBLE,
    }
)  # fmt: skip
"""The types to which a cast keeps the order of values."""
_CONSTANTS = (exp.Literal, exp.Interval, exp.Var, exp.DataType, exp.Neg, exp.IntervalSpan)


@dataclass(slots=True)
class WaterlineAnalysis:
    """The waterlines of a program's relations, derived stage by stage.

    :param markers: relations whose changes affect rows of any age, so that stages that read them have no waterlines
    """

    markers: frozenset[str] = frozenset()
    relations: dict[str, dict[str, str]] = field(default_factory=dict)

    def declare(self, relation: str, columns: Iterable[str]) -> None:
        """Declare the columns of a table or view that have lateness of their own."""
        known = self.relations.setdefault(relation, {})
        known.update({column: quote(waterline_input(relation, column)) for column in columns})

    def add(self, stages: Iterable[Stage]) -> None:
        """Derive the waterlines of the stages' relations.

        :param stages: the stages, each after those it reads
        """
        for stage in stages:
            waterlines = self.of(stage.node)
            names = [name for name, _ in stage.columns]
            if waterlines and stage.relation not in self.relations:
                self.relations[stage.relation] = _of_columns(waterlines, names)

    @singledispatchmethod
    def of(self, node: Any) -> Known:
        """Return the waterlines of a node's columns: every row that a later step adds or retracts has values at or above them.

        :param node: a node of any kind; kinds without a rule here have none
        """
        del node
        return {}

    @of.register
    def _(self, node: Scan) -> Known:
        return _of_columns(self.relations.get(node.relation, {}), node.columns)

    @of.register
    def _(self, node: UnionAll) -> Known:
        parts = [(self.of(part), part.columns) for part in node.parts]
        waterlines = {
            own: least([known.get(theirs) for known, theirs in zip((known for known, _ in parts), places, strict=True)])
            for at, name in enumerate(node.columns)
            for own, *places in zip(_with_bounds(name), *(_with_bounds(names[at]) for _, names in parts), strict=True)
        }
        return {name: text for name, text in waterlines.items() if text is not None}

    @of.register
    def _(self, node: Select) -> Known:
        return self._items([(item.name, item.text) for item in node.items], self._sources(node))

    @of.register
    def _(self, node: Aggregate) -> Known:
        below = {("", name): text for name, text in self.of(node.input).items()}
        keys = {("", name): text for name, text in self._items([(k.name, k.text) for k in node.keys], below).items()}
        for key in node.keys:
            keys |= {(key.name, bound): text for bound, text in _bounds_of(key.text, below).items()}
            keys |= {("", _bound_of(key.name, bound)): text for bound, text in _bounds_of(key.text, below).items()}
        return self._items([(item.name, item.text) for item in node.items], keys)

    def keys(self, node: Aggregate) -> Known:
        """Return the waterlines of an aggregate's keys, or of the starts of windows: groups below one never change again."""
        below = {("", name): text for name, text in self.of(node.input).items()}
        waterlines = self._items([(key.name, key.text) for key in node.keys], below)
        for key in node.keys:
            start = _bounds_of(key.text, below).get("start")
            if start is not None:
                waterlines[f"{key.name}.`start`"] = start
        return {name: text for name, text in waterlines.items() if _BOUND not in name}

    def _items(self, items: Sequence[tuple[str, str]], below: Mapping[tuple[str, str], str]) -> dict[str, str]:
        if not below:
            return {}
        waterlines = {name: _over(text, below) for name, text in items}
        waterlines |= {_bound_of(name, bound): known for name, text in items for bound, known in _bounds_of(text, below).items()}
        return {name: text for name, text in waterlines.items() if text is not None}

    def _sources(self, node: Select) -> dict[tuple[str, str], str]:
        """Return the waterlines of the columns of a block's sources, as they hold for the block's rows."""
        if any(isinstance(source.node, Scan) and source.node.relation in self.markers for source in node.sources):
            return {}
        columns = {(source.alias, name): text for source in node.sources for name, text in self.of(source.node).items()}
        if len(node.sources) == 1:
            return columns
        # A row of a join is as old as its oldest part, unless all parts agree in the column.
        waterlines: dict[tuple[str, str], str] = {}
        for group in equal_columns(node):
            late = sorted(column for column in group if column in columns)
            texts = [columns[column] for column in late]
            if {alias for alias, _ in late} == {source.alias for source in node.sources}:
                lowest = least(texts)
                if lowest is not None:
                    waterlines |= dict.fromkeys(group, lowest)
        return waterlines


_BOUND = "\0"
"""The separator between the name of a column of windows and that of a bound; no name contains it."""


def _bound_of(column: str, bound: str) -> str:
    """Return the name of a bound of windows among the columns with waterlines."""
    return f"{column}{_BOUND}{bound}"


def _with_bounds(column: str) -> tuple[str, ...]:
    return (column, *(_bound_of(column, bound) for bound in _BOUNDS))


def _of_columns(known: Known, columns: Collection[str]) -> dict[str, str]:
    """Return the waterlines of some columns and of their bounds."""
    return {name: text for name, text in known.items() if name.partition(_BOUND)[0] in columns}


def equal_columns(node: Select) -> list[set[tuple[str, str]]]:
    """Return the groups of columns (alias, name) that a block's condition makes equal."""
    groups: list[set[tuple[str, str]]] = []
    if node.where is None:
        return groups
    for left, right in _equalities(node.where):
        joined = {left, right}
        for group in [group for group in groups if group & joined]:
            groups.remove(group)
            joined |= group
        groups.append(joined)
    return groups


def _equalities(where: WhereClause) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    try:
        condition = where.parse()
    except SyntaxFailure:
        # A condition that cannot be parsed here gives no waterline.
        return
    waiting = [condition]
    while waiting:
        part = waiting.pop().unnest()
        if isinstance(part, exp.And):
            waiting += [part.left, part.right]
        elif isinstance(part, exp.EQ):
            left, right = part.left.unnest(), part.right.unnest()
            if isinstance(left, exp.Column) and isinstance(right, exp.Column):
                yield (left.table, left.name), (right.table, right.name)


def least(texts: Sequence[str | None]) -> str | None:
    """Return the lowest of several waterlines, or None if one does not exist. It is NULL while one of them is."""
    known = list(dict.fromkeys(text for text in texts if text is not None))
    if not known or any(text is None for text in texts):
        return None
    if len(known) == 1:
        return known[0]
    missing = " OR ".join(f"({text}) IS NULL" for text in known)
    return f"(CASE WHEN {missing} THEN NULL ELSE LEAST({', '.join(known)}) END)"


def _over(text: str, below: Mapping[tuple[str, str], str]) -> str | None:
    """Return the waterline of an expression over columns with waterlines, or None if the expression is not known to be monotone."""
    try:
        item = Expression(text).parse()
    except SyntaxFailure:
        return None
    if isinstance(item, exp.Dot):
        return _bounds(item.this, below).get(item.expression.name)
    if isinstance(item, exp.Column) and (bound := below.get((item.db, _bound_of(item.table, item.name)))) is not None:
        return bound
    columns = list(item.find_all(exp.Column))
    if len(columns) != 1 or not _is_monotone(item):
        return None
    column = columns[0]
    known = below.get((column.table, column.name)) or below.get(("", column.name))
    if known is None:
        return None
    if column is item:
        return known
    column.replace(Expression(known).parse())
    return str(item.sql(dialect=DIALECT))


def tumbling_start(text: str) -> str | None:
    """Return the start of a tumbling window of a column as a plain expression, or None if a text is no such window."""
    window = Expression(text).tree
    if window is None:
        return None
    columns = {(column.table, column.name): str(column.sql(dialect=DIALECT)) for column in window.find_all(exp.Column)}
    return _bounds(window, columns).get("start")


def _bounds_of(text: str, below: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """Return the waterlines of ``start`` and ``end`` of a tumbling window of a column with a waterline, or of a column of them."""
    tree = Expression(text).tree
    if tree is None:
        return {}
    if not isinstance(tree, exp.Column):
        return _bounds(tree, below)
    waterlines = {bound: below.get((tree.table, _bound_of(tree.name, bound))) for bound in _BOUNDS}
    return {bound: known for bound, known in waterlines.items() if known is not None}


def _bounds(window: exp.Expr, below: Mapping[tuple[str, str], str]) -> dict[str, str]:
    if not isinstance(window, exp.Anonymous) or window.name.lower() != "window" or len(window.expressions) != 2:
        return {}
    length = fixed_length(window.expressions[1])
    known = _over(window.expressions[0].sql(dialect=DIALECT), below)
    if length is None or known is None:
        return {}
    # Computed without the window function, which drops rows without a time and may occur only once in a query.
    micros = f"UNIX_MICROS(CAST({known} AS TIMESTAMP))"
    start = f"{micros} - PMOD({micros}, {length})"
    texts = {"start": start, "end": f"{start} + {length}"}
    return {name: f"CAST(TIMESTAMP_MICROS({text}) AS TIMESTAMP_NTZ)" for name, text in texts.items()}


def _is_monotone(node: exp.Expr) -> bool:
    if isinstance(node, exp.Column):
        return True
    if isinstance(node, exp.Paren):
        return _is_monotone(node.this)
    if isinstance(node, exp.Cast):
        return node.to.this in _KEPT_TYPES and _is_monotone(node.this)
    if isinstance(node, exp.Add | exp.Sub):
        if _is_constant(node.expression):
            return _is_monotone(node.this)
        return isinstance(node, exp.Add) and _is_constant(node.this) and _is_monotone(node.expression)
    if isinstance(node, exp.Func):
        name = node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
        if name not in _MONOTONE and not isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
            return False
        moving = [child for child in node.iter_expressions() if not _is_constant(child)]
        return len(moving) == 1 and _is_monotone(moving[0])
    return False


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, _CONSTANTS) and node.find(exp.Column) is None
