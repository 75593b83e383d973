"""Subqueries in expressions: each becomes a stage that is joined to the rows that ask, or one keyed by what ties it to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from airflow_pipelines.sql.identifiers import quote
from airflow_pipelines.sql.plan.aggregates import aggregate_calls
from airflow_pipelines.sql.plan.blocks import Block, Place, bare, column, common_type, is_key_type, key_types
from airflow_pipelines.sql.plan.correlation import Correlation, correlation, is_one_row, is_plain
from airflow_pipelines.sql.plan.expressions import (
    NotIncremental,
    conjuncts,
    distinct,
    function_name,
    require_scalar,
    require_steady,
    sql,
    substituted,
)
from airflow_pipelines.sql.plan.grouping import Groups, aggregate
from airflow_pipelines.sql.plan.names import free_sources
from airflow_pipelines.sql.plan.nodes import Keyed, KeyedSource, Linear, Shape
from airflow_pipelines.sql.plan.outer import equal_pairs, outer_join
from airflow_pipelines.sql.plan.plain import plain_linear
from airflow_pipelines.sql.plan.scope import Scope

_COUNTS = frozenset({"count", "count_if", "regr_count", "approx_count_distinct"})
"""Aggregates that are 0 over no rows."""
# fmt: off
_NULL_OVER_NOTHING = frozenset({
    "any", "any_value", "avg", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "corr", "covar_pop", "covar_samp", "every",
    "first", "first_value", "kurtosis", "last", "last_value", "logical_and", "logical_or", "max", "max_by", "mean", "median", "min",
    "min_by", "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp", "sum", "try_avg", "try_sum", "var_pop", "var_samp",
    "variance", "variance_pop",
})
# fmt: on
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_STRICT = (*_COMPARISONS, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Paren, exp.Cast)
"""What is NULL as soon as one operand is."""


def has_subquery(tree: exp.Expr) -> bool:
    """Whether an expression holds a subquery."""
    return tree.find(exp.Query) is not None


def keep(block: Block, scope: Scope, conditions: Sequence[exp.Expr]) -> None:
    """Keep only the rows of a block for which all conditions hold; they may hold subqueries."""
    parts = [part for condition in conditions for part in conjuncts(condition)]
    for part in parts:
        if not has_subquery(part):
            require_scalar(part)
            block.filter(part)
    # What only drops rows comes first: it makes what is joined afterwards smaller.
    asking = [part for part in parts if has_subquery(part)]
    asker = _Asker(block, scope)
    for part in sorted(asking, key=lambda part: _question(part) is None):
        asker.keep(part)
    asker.finish()


def answered(block: Block, scope: Scope, tree: exp.Expr) -> exp.Expr:
    """The expression with columns of the block in place of its subqueries; the block gets what gives these columns."""
    return _Asker(block, scope).value(tree)


def _question(condition: exp.Expr) -> exp.Exists | exp.In | None:
    """What a condition asks for if it is [NOT] EXISTS or [NOT] IN alone."""
    inner = condition.unnest()
    while isinstance(inner, exp.Not):
        inner = inner.this.unnest()
    return inner if isinstance(inner, exp.Exists) or _is_in(inner) else None  # type: ignore[return-value]


def _is_in(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.In) and tree.args.get("query") is not None


def _is_negated(condition: exp.Expr) -> bool:
    inner, negated = condition.unnest(), False
    while isinstance(inner, exp.Not):
        inner, negated = inner.this.unnest(), not negated
    return negated


def _query(holder: exp.Expr) -> exp.Query:
    """The query in EXISTS, IN or a scalar subquery."""
    tree: exp.Expr = holder.args["query"] if isinstance(holder, exp.In) else holder
    tree = tree.this if isinstance(tree, exp.Exists) else tree
    while isinstance(tree, exp.Subquery):
        tree = tree.this
    if not isinstance(tree, exp.Query):
        raise NotIncremental("a subquery in an unknown form has no incremental rule")
    return tree


class _Asker:
    """Answers one block's subqueries."""

    def __init__(self, block: Block, scope: Scope) -> None:
        self.block = block
        self.scope = scope
        self.builder = block.builder
        self.unsure: list[tuple[Linear, exp.Expr]] = []
        """The rows of subqueries after NOT IN, and what must not be among them."""

    def finish(self) -> None:
        """Apply what is left of the conditions, once nothing else has to be asked."""
        for node, left in self.unsure:
            nothing, has_null = self._flags(node)
            known = exp.and_(exp.Not(this=has_null), _is_not_null(left), copy=True)
            self.block.filter(exp.or_(nothing, known, copy=True))

    def keep(self, condition: exp.Expr) -> None:
        """Keep the rows for which a condition with subqueries holds."""
        question = _question(condition)
        if question is None:
            self.block.filter(self.value(condition, is_condition=True))
            return
        for part in self._left_sides(question):
            require_scalar(part)
        negated, query = _is_negated(condition), _query(question)
        if isinstance(question, exp.Exists):
            self._keep_existing(question, query, negated)
        else:
            self._keep_found(question, query, negated)

    def _left_sides(self, question: exp.Exists | exp.In) -> list[exp.Expr]:
        if isinstance(question, exp.Exists):
            return []
        left = question.this.unnest()
        return list(left.expressions) if isinstance(left, exp.Tuple) else [left]

    def _keep_existing(self, question: exp.Exists, query: exp.Query, negated: bool) -> None:
        if not self._is_correlated(query):
            there = self._exists_at_all(query)
            self.block.filter(exp.Not(this=there) if negated else there)
            return
        found = correlation(query, self.scope, self.block.aliases)
        self._ask(found, question, found.tied, negated=negated)

    def _keep_found(self, question: exp.In, query: exp.Query, negated: bool) -> None:
        lefts = self._left_sides(question)
        if self._is_correlated(query):
            found = correlation(query, self.scope, self.block.aliases)
            # NOT IN depends on all rows that are tied to the one that asks, IN only on those that are equal.
            equal = _equalities(lefts, found.items) if found.is_plain and not negated else []
            self._ask(found, question, [*found.tied, *equal], negated=negated)
            return
        node = self._kept(query)
        if not negated:
            self._join_or_ask(query, lefts, node)
        elif len(lefts) == 1:
            self._ask_values(lefts, node, negated=True)
            self.unsure.append((node, lefts[0]))
        else:
            # A row of several values may be unlike another one in one value and unknown in the others.
            self._ask_all(exp.Not(this=question.copy()), question, node)

    def _join_or_ask(self, query: exp.Query, lefts: list[exp.Expr], node: Linear) -> None:
        """``lefts IN query``: a join when the query gives no row twice."""
        alias = self._join(node) if _is_unique(query) and self._have_types_of(lefts, node) else None
        if alias is None:
            self._ask_values(lefts, node, negated=False)
            return
        for left, name in zip(lefts, node.columns, strict=True):
            self.block.filter(exp.EQ(this=left.copy(), expression=column((alias, name))))

    def value(self, tree: exp.Expr, is_condition: bool = False) -> exp.Expr:
        """The expression with columns in place of its subqueries.

        :param is_condition: rows for which the expression is not true are not needed
        """
        require_steady(tree)
        for holder in distinct(holders(tree)):
            if isinstance(holder, exp.In) and not _in_condition(tree, holder):
                return self._whole(tree)
        needed = tree if is_condition else None
        for holder in distinct(holders(tree)):
            negated = any(isinstance(node, exp.Not) and node.this.unnest() == holder for node in tree.walk())
            if isinstance(holder, exp.In) and negated:
                tree = self._found_values(tree, holder)
            else:
                answer = self._answer(holder, needed)
                tree = substituted(tree, {holder: answer})
        return tree

    def _answer(self, holder: exp.Expr, needed: exp.Expr | None) -> exp.Expr:
        query = _query(holder)
        if isinstance(holder, exp.Exists):
            return self._existence(holder, query)
        if isinstance(holder, exp.In):
            return self._finding(holder, query)
        return self._scalar(holder, query, needed)

    def _existence(self, holder: exp.Exists, query: exp.Query) -> exp.Expr:
        if not self._is_correlated(query):
            return self._exists_at_all(query)
        found = correlation(query, self.scope, self.block.aliases)
        return self._ask_for(found, holder, found.tied)

    def _finding(self, holder: exp.In, query: exp.Query) -> exp.Expr:
        """Whether IN is true; as Spark does, what is unknown counts as false here."""
        lefts = self._left_sides(holder)
        for part in lefts:
            require_scalar(part)
        if self._is_correlated(query):
            found = correlation(query, self.scope, self.block.aliases)
            equal = _equalities(lefts, found.items) if found.is_plain else []
            return self._ask_for(found, holder, [*found.tied, *equal])
        return self._value_among(lefts, self._kept(query))

    def _found_values(self, tree: exp.Expr, holder: exp.In) -> exp.Expr:
        """The expression with columns in place of one ``IN``, and of its negation where that is what the expression asks for."""
        query, lefts = _query(holder), self._left_sides(holder)
        missing = next(node for node in tree.walk() if isinstance(node, exp.Not) and node.this.unnest() == holder)
        if self._is_correlated(query):
            found = correlation(query, self.scope, self.block.aliases)
            tree = substituted(tree, {missing: self._ask_for(found, missing, found.tied)})
        elif len(lefts) == 1:
            for part in lefts:
                require_scalar(part)
            node = self._kept(query)
            there = self._value_among(lefts, node)
            nothing, has_null = self._flags(node)
            known = exp.and_(exp.Not(this=has_null), _is_not_null(lefts[0]), exp.Not(this=there), copy=True)
            tree = substituted(tree, {missing: exp.Paren(this=exp.or_(nothing, known, copy=True)), holder: there})
        else:
            return self._whole(tree)
        return tree if holder not in list(tree.walk()) else substituted(tree, {holder: self._finding(holder, query)})

    def _scalar(self, holder: exp.Expr, query: exp.Query, needed: exp.Expr | None) -> exp.Expr:
        if not self._is_correlated(query):
            node = self._kept(query)
            if not is_one_row(query):
                node = self._single(node)
            alias = self._join(node)
            return column((alias, node.columns[0]))
        found = correlation(query, self.scope, self.block.aliases)
        answer = self._grouped(found, holder, needed)
        return answer if answer is not None else self._ask_for(found, exp.Subquery(this=query.copy()), found.tied)

    def _is_correlated(self, query: exp.Query) -> bool:
        return bool(free_sources(query))

    def _kept(self, query: exp.Query) -> Linear:
        """A subquery that reads nothing of the query around it, as a node that is cheap to read more than once."""
        return self.builder.rereadable(self.scope.linear(query))

    def _join(self, node: Linear) -> str:
        """Join a node to the block; gives its name."""
        alias = self.builder.name("s")
        self.block.wanted = self.block.wanted | {(alias, name) for name in node.columns}
        self.block.add(alias, node)
        return alias

    def _single(self, node: Linear) -> Linear:
        """The value of a subquery that may turn out to have several rows, which is an error, or none, which is NULL."""
        alias = self.builder.name("i")
        query = f"SELECT (SELECT {quote(node.columns[0])} FROM {quote(alias)}) AS v"
        return self.builder.stage(Keyed((KeyedSource(alias, node, ()),), query, ("v",), (), Shape.SUBQUERY))

    def _totals(self, node: Linear, outputs: list[tuple[str, exp.Expr]], alias: str) -> Linear:
        """One row of expressions over all rows of a node, which they read under ``alias``."""
        rows = Block(self.builder, frozenset((alias, name) for name in node.columns))
        rows.add(alias, node)
        calls = distinct(call for _, tree in outputs for call in aggregate_calls(tree))
        return self.builder.stage(aggregate(rows, Groups([], calls), outputs, None))

    def _exists_at_all(self, query: exp.Query) -> exp.Expr:
        if isinstance(query, exp.Select) and is_plain(query):
            query = query.copy()
            query.set("expressions", [exp.alias_(exp.Literal.number(1), "one")])
        count = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
        node = self._totals(self.scope.linear(query), [("there", count)], self.builder.name("i"))
        return column((self._join(node), "there"))

    def _flags(self, node: Linear) -> tuple[exp.Expr, exp.Expr]:
        """Whether a node of one column has no row at all, and whether it has one that is NULL."""
        alias = self.builder.name("i")
        nothing = exp.EQ(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
        is_null = exp.Is(this=column((alias, node.columns[0])), expression=exp.Null())
        has_null = exp.GT(this=exp.CountIf(this=is_null), expression=exp.Literal.number(0))
        totals = self._totals(node, [("nothing", nothing), ("has_null", has_null)], alias)
        flags = self._join(totals)
        return column((flags, "nothing")), column((flags, "has_null"))

    def _have_types_of(self, lefts: Sequence[exp.Expr], node: Linear) -> bool:
        """Whether expressions of the block have exactly the types of a node's columns, so that equal is equal for both."""
        if len(lefts) != len(node.columns):
            raise NotIncremental("IN with a row of another length has no incremental rule")
        kinds = self._types(lefts)
        return kinds == [kind for _, kind in self.builder.types(plain_linear(node))]

    def _types(self, trees: Sequence[exp.Expr]) -> list[str]:
        outputs = [(f"t{at}", tree) for at, tree in enumerate(trees)]
        return [kind for _, kind in self.builder.types(plain_linear(self.block.select(outputs)))]

    def _grouped(self, found: Correlation, holder: exp.Expr, needed: exp.Expr | None) -> exp.Expr | None:
        """A correlated aggregate as a relation with one row per key, joined to the block; None when it is not of that kind.

        ``needed``: the condition that the value is for; when it cannot hold without rows, an inner join will do.
        """
        query, pairs = found.whole, self._key_pairs(found)
        if query is not found.core or not is_one_row(query) or pairs is None:
            return None
        item = query.expressions[0].unalias()
        calls = distinct(aggregate_calls(item))
        outer = free_sources(query)
        if len(query.expressions) != 1 or any(_empty(call) is None or free_sources(call) & outer for call in calls):
            return None
        names = {call: f"r{at}" for at, call in enumerate(calls)}
        items: list[exp.Expr] = [exp.alias_(key.copy(), f"k{at}") for at, (_, key) in enumerate(pairs)]
        items += [exp.alias_(call.copy(), name) for call, name in names.items()]
        node = self.builder.rereadable(found.scope.linear(found.query(items, [key.copy() for _, key in pairs])))
        alias = self.builder.name("s")
        self.block.wanted = self.block.wanted | {(alias, name) for name in node.columns}
        ties = []
        for at, (tie, _) in enumerate(pairs):
            ties.append(type(tie)(this=tie.this, expression=column((alias, f"k{at}"))))
        values: dict[exp.Expr, exp.Expr] = {call: column((alias, name)) for call, name in names.items()}
        nulls = {values[call] for call in calls if _empty(call) == "NULL"}
        answer = substituted(item, values)
        if needed is not None and _needs_one_of(substituted(needed, {holder: answer}), nulls):
            self.block.add(alias, node)
            for tie in ties:
                self.block.filter(tie)
            return exp.Paren(this=answer)
        right = Block(self.builder, self.block.wanted)
        right.add(alias, node)
        outer_join(self.block, right, "LEFT", exp.and_(*ties, copy=True))
        zeros = {
            values[call]: exp.Coalesce(this=values[call].copy(), expressions=[exp.Literal.number(0)])
            for call in calls
            if _empty(call) == "0"
        }
        return exp.Paren(this=substituted(answer, zeros))

    def _key_pairs(self, found: Correlation) -> list[tuple[exp.Binary, exp.Expr]] | None:
        """What ties a subquery as equalities: each with its outer side on the left, and the inner side in the type they compare in.

        None when there is more to it, or when keys cannot be made of them.
        """
        outer, pairs = free_sources(found.whole), []
        for tie in found.tied:
            inner = tie.unnest()
            if not isinstance(inner, exp.EQ | exp.NullSafeEQ) or has_subquery(inner):
                return None
            for first, second in ((inner.left, inner.right), (inner.right, inner.left)):
                if (
                    free_sources(first)
                    and free_sources(first) <= outer
                    and free_sources(second)
                    and not free_sources(second) & outer
                ):
                    pairs.append((type(inner)(this=first.copy(), expression=second.copy()), second))
                    break
            else:
                return None
        if not pairs:
            return None
        query = found.query([exp.alias_(key.copy(), f"k{at}") for at, (_, key) in enumerate(pairs)])
        kinds = self.builder.types(found.scope.standalone(query)[0])
        typed: list[tuple[exp.Binary, exp.Expr]] = []
        for (tie, key), (_, kind), ours in zip(pairs, kinds, self._types([tie.left for tie, _ in pairs]), strict=True):
            try:
                common = common_type(self.builder, [ours, kind])
            except NotIncremental:
                return None
            if not is_key_type(common):
                return None
            typed.append((tie, key if common == kind else exp.cast(key.copy(), common, dialect="spark")))
        return typed

    def _ask(self, found: Correlation, holder: exp.Expr, ties: Sequence[exp.Expr], *, negated: bool) -> None:
        """Keep the rows for which EXISTS or IN holds (does not hold)."""
        node, names = found.rows()
        alias = self.builder.name("i")
        condition = substituted(holder, {found.whole: found.over(alias, names)})
        self._become(alias, node, names, exp.Not(this=condition) if negated else condition, ties, value=None)

    def _ask_for(self, found: Correlation, holder: exp.Expr, ties: Sequence[exp.Expr]) -> exp.Expr:
        """The value of an expression whose only subquery is a correlated one, as a column of the block."""
        node, names = found.rows()
        alias = self.builder.name("i")
        tree = substituted(holder, {found.whole: found.over(alias, names)})
        return self._become_valued(alias, node, names, tree, ties)

    def _ask_values(self, lefts: Sequence[exp.Expr], node: Linear, *, negated: bool) -> None:
        """Keep the rows whose values are (are not) among a node's rows, where nothing is equal to NULL."""
        alias = self.builder.name("i")
        exists, names, ties = self._among(lefts, node, alias)
        self._become(alias, node, names, exp.Not(this=exists) if negated else exists, ties, value=None)

    def _value_among(self, lefts: Sequence[exp.Expr], node: Linear) -> exp.Expr:
        alias = self.builder.name("i")
        exists, names, ties = self._among(lefts, node, alias)
        return self._become_valued(alias, node, names, exists, ties)

    def _among(self, lefts: Sequence[exp.Expr], node: Linear, alias: str) -> tuple[exp.Expr, dict[Place, str], list[exp.Expr]]:
        names: dict[Place, str] = {(alias, name): name for name in node.columns}
        ties = _equalities(lefts, [column(place) for place in names])
        query = exp.Select(expressions=[exp.Literal.number(1)]).from_(exp.to_identifier(alias, quoted=True))
        return exp.Exists(this=query.where(*ties)), names, ties

    def _ask_all(self, condition: exp.Expr, question: exp.In, node: Linear) -> None:
        """Keep the rows for which a condition with one IN holds; any row of the node may matter to any of them."""
        alias = self.builder.name("i")
        condition = substituted(condition, {question: self._reading(question, alias, node)})
        self._become(alias, node, {}, condition, [], value=None)

    def _reading(self, question: exp.In, alias: str, node: Linear) -> exp.Expr:
        columns = [exp.column(name, table=alias, quoted=True) for name in node.columns]
        query = exp.Select(expressions=columns).from_(exp.to_identifier(alias, quoted=True))
        return exp.In(this=question.this.copy(), query=exp.Subquery(this=query))

    def _whole(self, tree: exp.Expr) -> exp.Expr:
        """An expression with one IN at a place where only Spark knows how it takes what is unknown, as a column."""
        found = distinct(holders(tree))
        holder = found[0]
        if len(found) > 1 or not isinstance(holder, exp.In) or self._is_correlated(_query(holder)):
            raise NotIncremental("this form of IN within an expression has no incremental rule")
        node, alias = self._kept(_query(holder)), self.builder.name("i")
        return self._become_valued(alias, node, {}, substituted(tree, {holder: self._reading(holder, alias, node)}), [])

    def _become_valued(
        self, alias: str, node: Linear, names: dict[Place, str], tree: exp.Expr, ties: Sequence[exp.Expr]
    ) -> exp.Expr:
        value = (self.builder.name("v"), "v")
        self._become(alias, node, names, tree, ties, value)
        return column(value)

    def _become(
        self,
        alias: str,
        node: Linear,
        names: dict[Place, str],
        tree: exp.Expr,
        ties: Sequence[exp.Expr],
        value: Place | None,
    ) -> None:
        """Make the block a stage that asks one subquery.

        :param alias: the name by which ``tree`` reads the subquery's rows
        :param node: these rows
        :param names: the columns that ``ties`` read of them, and what the node calls these
        :param tree: the condition or, with ``value``, the expression that the stage evaluates for each row of the block
        :param ties: what ties both; the equalities among it are the stage's keys
        :param value: the query's name of the expression; None to keep the rows for which it is true
        """
        asking = self.builder.name("o")
        left, left_names = self.block.packed()
        trees: dict[exp.Expr, exp.Expr] = {column(place): column((asking, name)) for place, name in left_names.items()}
        pairs = equal_pairs(ties, (left, left_names), (node, names), self.block)
        if pairs:
            own, other = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
        else:
            own, other = self._read(tree, left_names), ()
            if not own or not all(map(is_key_type, key_types(self.builder, left, own))):
                raise NotIncremental("a subquery that nothing ties to its query by equality has no incremental rule")
            self.builder.reasons.append("a subquery that is tied to its query by no equality is asked again by every row")
        kept = {place: f"c{at}" for at, place in enumerate(left_names)}
        items = [f"{quote(asking)}.{quote(name)} AS {kept[place]}" for place, name in left_names.items()]
        text = sql(substituted(tree, trees))
        where = f" WHERE {text}" if value is None else ""
        if value is not None:
            kept[value] = f"c{len(kept)}"
            items.append(f"{text} AS {kept[value]}")
        query = f"SELECT {', '.join(items) or '1 AS c0'} FROM {quote(asking)}{where}"
        pieces = (KeyedSource(asking, left, own), KeyedSource(alias, node, other))
        self.block.become_keyed(pieces, query, kept or {("", ""): "c0"}, Shape.SUBQUERY)

    def _read(self, tree: exp.Expr, names: dict[Place, str]) -> tuple[str, ...]:
        """The block's columns that an expression reads, as the packed block calls them."""
        found = distinct(tree.find_all(exp.Column))
        return tuple(
            bare(exp.column(names[(part.table, part.name)]))
            for part in found
            if isinstance(part, exp.Column) and (part.table, part.name) in names
        )


def holders(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost EXISTS, IN and scalar subqueries in an expression."""
    if isinstance(tree, exp.Exists) or _is_in(tree) or isinstance(tree, exp.Query):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from holders(child)


def _in_condition(tree: exp.Expr, holder: exp.Expr) -> bool:
    """Whether Spark surely takes IN for a condition wherever it stands in an expression: what is unknown counts as false."""
    places = [node for node in tree.walk() if node == holder]
    return all(_is_condition(place, tree) for place in places)


def _is_condition(node: exp.Expr, root: exp.Expr) -> bool:
    while node is not root:
        parent = node.parent
        if isinstance(parent, exp.If) and isinstance(parent.parent, exp.Case) and parent.this is node and not parent.parent.this:
            return True
        if not isinstance(parent, exp.And | exp.Or | exp.Not | exp.Paren):
            return False
        if isinstance(parent, exp.Not) and not isinstance(node.unnest(), exp.In):
            # Spark turns NOT (a AND b) around, and IN into NOT IN with it.
            return False
        node = parent
    return True


def _equalities(lefts: Sequence[exp.Expr], rights: Sequence[exp.Expr]) -> list[exp.Expr]:
    if len(lefts) != len(rights):
        raise NotIncremental("IN with a row of another length has no incremental rule")
    return [exp.EQ(this=left.copy(), expression=right.copy()) for left, right in zip(lefts, rights, strict=True)]


def _is_not_null(tree: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=exp.Paren(this=tree.copy()), expression=exp.Null()))


def _is_unique(query: exp.Query) -> bool:
    """Whether a query surely gives no row twice."""
    if not isinstance(query, exp.Select):
        return isinstance(query, exp.SetOperation) and bool(query.args.get("distinct"))
    if query.args.get("distinct") or is_one_row(query):
        return True
    group = query.args.get("group")
    if group is None or group.args.get("all") or not group.expressions:
        return False
    items = [item.unalias() for item in query.expressions]
    return all(key in items for key in group.expressions)


def _empty(call: exp.Expr) -> str | None:
    """What an aggregate gives over no rows; None when that is not known."""
    while isinstance(call, exp.Filter):
        call = call.this
    name = function_name(call)
    if name in _COUNTS or isinstance(call, exp.Count | exp.CountIf):
        return "0"
    return "NULL" if name in _NULL_OVER_NOTHING else None


def _needs_one_of(condition: exp.Expr, columns: set[exp.Expr]) -> bool:
    """Whether a condition cannot be true when all of some columns are NULL."""
    inner = condition.unnest()
    if not isinstance(inner, _COMPARISONS):
        return False
    return any(_is_strict(side, columns) for side in (inner.left, inner.right))


def _is_strict(tree: exp.Expr, columns: set[exp.Expr]) -> bool:
    if tree in columns:
        return True
    return isinstance(tree, _STRICT) and any(_is_strict(child, columns) for child in tree.iter_expressions())
