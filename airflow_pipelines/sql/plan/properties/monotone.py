"""The check that a query is monotone in the recursive views it reads: more of their rows never give fewer of its own.

Only monotone definitions have a least fixed point, which can be computed by adding rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from sqlglot import exp

from airflow_pipelines.sql.syntax.aggregate_calls import is_aggregate

_CONNECTIVES = (exp.And, exp.Or, exp.Paren)
_LIMITS = ("limit", "offset", "fetch")


@dataclass(frozen=True, slots=True)
class RecursiveRead:
    """A read of a view of the query's own recursion; offsets are those of the parsed text, ``end`` exclusive."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NotMonotone:
    """A read that is not monotone.

    :param reason: the place of the read, as the end of a sentence
    """

    read: RecursiveRead
    reason: str


def not_monotone(tree: exp.Query, recursive: Set[str]) -> list[NotMonotone]:
    """Return the reads of ``recursive`` views that are not monotone, each once: more rows there could mean fewer rows of the query.

    :param tree: a view's query
    :param recursive: the canonical names of the views in the same cycle as the query's view, itself included
    """
    checker = _Checker(recursive)
    checker.query(tree, {})
    return list({(refusal.read.start, refusal.read.end): refusal for refusal in reversed(checker.refusals)}.values())[::-1]


_Visible = Mapping[str, RecursiveRead | None]
"""The common table expressions in scope, each with the recursive read that it makes, or None."""


@dataclass(slots=True)
class _Checker:
    """A walk over a query. Each method returns the recursive read that a part's rows depend on, or None."""

    recursive: Set[str]
    refusals: list[NotMonotone] = field(default_factory=list)

    def query(self, tree: exp.Expr, visible: _Visible) -> RecursiveRead | None:
        visible = self._commons(tree, visible)
        match tree:
            case exp.Subquery():
                read = self._source(tree, visible)
            case exp.Except():
                read = self.query(tree.this, visible)
                self._refuse(self.query(tree.expression, visible), "on the right side of EXCEPT")
            case exp.SetOperation():
                read = self.query(tree.this, visible) or self.query(tree.expression, visible)
            case exp.Select():
                read = self._select(tree, visible)
            case _:
                read = self._find_read(tree, visible)
                self._refuse(read, f"in {tree.key.upper()}")
        if any(tree.args.get(name) is not None for name in _LIMITS):
            self._refuse(read, "under LIMIT or OFFSET")
        return read

    def _commons(self, tree: exp.Expr, visible: _Visible) -> _Visible:
        clause = tree.args.get("with_")
        if clause is None:
            return visible
        for common in clause.expressions:
            inner = {**visible, common.alias: None} if clause.args.get("recursive") else visible
            visible = {**visible, common.alias: self.query(common.this, inner)}
        return visible

    def _select(self, tree: exp.Select, visible: _Visible) -> RecursiveRead | None:
        clause = tree.args.get("from_")
        read = self._source(clause.this, visible) if clause is not None else None
        read = self._joins(tree, read, visible)
        for lateral in tree.args.get("laterals") or ():
            read = read or self._find_read(lateral, visible)
        where = tree.args.get("where")
        if where is not None:
            read = self._condition(where.this, visible) or read
        for name in ("expressions", "group", "having", "qualify", "order", "sort", "windows", "pivots", "match"):
            self._refuse(self._find_read(tree.args.get(name), visible), "in a subquery outside of FROM and WHERE")
        reason = _find_gathering_clause(tree)
        if reason is not None:
            self._refuse(read, reason)
        return read

    def _joins(self, tree: exp.Expr, read: RecursiveRead | None, visible: _Visible) -> RecursiveRead | None:
        """Return the recursive read of a FROM clause.

        :param read: the recursive read of the left side of its joins
        """
        for join in tree.args.get("joins") or ():
            side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
            other = self._source(join.this, visible)
            if (join.args.get("method") or "").upper() == "ASOF":
                self._refuse(other, "on the right side of an ASOF JOIN")
            elif kind == "ANTI":
                self._refuse(other, "on the right side of an ANTI JOIN")
            elif side in {"LEFT", "FULL"} and kind != "SEMI":
                self._refuse(other, f"on the right side of a {side} JOIN")
            if side in {"RIGHT", "FULL"} and kind not in {"SEMI", "ANTI"}:
                self._refuse(read, f"on the left side of a {side} JOIN")
            condition = join.args.get("on")
            if condition is not None and not side and kind in {"", "INNER", "CROSS"}:
                read = self._condition(condition, visible) or read
            else:
                self._refuse(self._find_read(condition, visible), "in the condition of an outer, semi or anti join")
            read = read or other
        return read

    def _source(self, tree: exp.Expr, visible: _Visible) -> RecursiveRead | None:
        match tree:
            case exp.Table() if isinstance(tree.this, exp.Identifier) and len(tree.parts) == 1:
                read = self._resolve_table(tree, visible)
            case exp.Subquery() | exp.Lateral() if isinstance(tree.this, exp.Query | exp.Table):
                inner = tree.this
                read = self._source(inner, visible) if isinstance(inner, exp.Table) else self.query(inner, visible)
            case exp.Query():
                read = self.query(tree, visible)
            case _:
                read = self._find_read(tree, visible)
        read = self._joins(tree, read, visible)
        if tree.args.get("pivots"):
            self._refuse(read, "under PIVOT")
        if tree.args.get("sample"):
            self._refuse(read, "under TABLESAMPLE")
        return read

    def _resolve_table(self, table: exp.Table, visible: _Visible) -> RecursiveRead | None:
        name = table.name
        if name in visible:
            return visible[name]
        if name not in self.recursive:
            return None
        meta = table.parts[0].meta
        return RecursiveRead(name, meta.get("start", 0), meta.get("end", 0) + 1)

    def _condition(self, tree: exp.Expr, visible: _Visible) -> RecursiveRead | None:
        """Return the recursive read of a WHERE condition: IN and EXISTS may read recursive views unless they are negated."""
        if isinstance(tree, _CONNECTIVES):
            parts = [self._condition(part, visible) for part in tree.iter_expressions()]
            return next((read for read in parts if read is not None), None)
        if isinstance(tree, exp.Exists):
            return self.query(tree.this, visible)
        if isinstance(tree, exp.In) and tree.args.get("query") is not None:
            self._refuse(self._find_read(tree.this, visible), "in a subquery that gives a value")
            return self.query(tree.args["query"], visible)
        inner = tree.this if isinstance(tree, exp.Not) else None
        reason = "in a subquery of an expression"
        if isinstance(inner, exp.Exists | exp.In):
            reason = "in NOT EXISTS" if isinstance(inner, exp.Exists) else "in NOT IN"
        self._refuse(self._find_read(tree, visible), reason)
        return None

    def _find_read(self, part: object, visible: _Visible) -> RecursiveRead | None:
        """Return the first recursive read below a part, in any position."""
        for query in _queries(part):
            read = self.query(query, visible)
            if read is not None:
                return read
        return None

    def _refuse(self, read: RecursiveRead | None, reason: str) -> None:
        if read is not None:
            self.refusals.append(NotMonotone(read, reason))


def _queries(part: object) -> Iterator[exp.Expr]:
    """Yield the topmost queries below a part of a tree, the part itself included."""
    if isinstance(part, list):
        for item in part:
            yield from _queries(item)
    elif isinstance(part, exp.Query):
        yield part
    elif isinstance(part, exp.Expr):
        for inner in part.iter_expressions():
            yield from _queries(inner)


def _find_gathering_clause(tree: exp.Select) -> str | None:
    """Return a phrase for the clause of a SELECT that depends on all rows of its sources at once, or None if there is none."""
    if tree.args.get("group") is not None:
        return "under GROUP BY"
    if tree.args.get("having") is not None:
        return "under HAVING"
    if tree.args.get("qualify") is not None:
        return "under QUALIFY"
    distinct = tree.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        return "under DISTINCT ON"
    for item in [*tree.expressions, *(tree.args.get("windows") or ())]:
        for node in item.walk(prune=lambda below: isinstance(below, exp.Query)):
            if isinstance(node, exp.Window):
                return "by a window function"
            if is_aggregate(node):
                return "by an aggregate"
    return None
