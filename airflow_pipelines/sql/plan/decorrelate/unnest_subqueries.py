"""Unnesting of subqueries in expressions: joins for uncorrelated ones, stages keyed by the correlation for the others."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from airflow_pipelines.sql.plan.blocks.outer_joins import outer_join
from airflow_pipelines.sql.plan.blocks.query_blocks import Block, column, common_type, is_key_type
from airflow_pipelines.sql.plan.decorrelate.correlation import Correlation, correlation, is_one_row
from airflow_pipelines.sql.plan.decorrelate.subquery_joins import SubqueryJoins
from airflow_pipelines.sql.plan.decorrelate.subquery_predicates import (
    equalities,
    has_subquery,
    in_condition,
    is_negated,
    is_not_null,
    is_unique,
    predicate_of,
    query_of,
    rejects_nulls,
    subquery_expressions,
    value_over_no_rows,
)
from airflow_pipelines.sql.plan.expressions import (
    NotIncremental,
    conjuncts,
    distinct,
    planning,
    require_deterministic,
    require_scalar,
    substitute,
)
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.ir.to_sql import linear_to_sql
from airflow_pipelines.sql.plan.scope import Scope
from airflow_pipelines.sql.plan.sources import free_sources
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls


def apply_conditions(block: Block, scope: Scope, conditions: Sequence[exp.Expr]) -> None:
    """Keep only the rows of a block for which all conditions hold.

    :param block: the rows
    :param scope: the scope of the block
    :param conditions: the conditions, which may have subqueries
    """
    parts = [part for condition in conditions for part in conjuncts(condition)]
    for part in parts:
        if not has_subquery(part):
            require_scalar(part)
            block.filter(part)
    # Predicates that only drop rows come first, because they make later joins smaller.
    with_subqueries = [part for part in parts if has_subquery(part)]
    unnesting = _Unnesting(block, scope)
    for part in sorted(with_subqueries, key=lambda part: predicate_of(part) is None):
        with planning(part):
            unnesting.apply_condition(part)
    unnesting.finish()


def unnest_subqueries(block: Block, scope: Scope, tree: exp.Expr) -> exp.Expr:
    """Join a block with the subqueries of an expression.

    :param block: the outer rows
    :param scope: the scope of the block
    :param tree: the expression
    :returns: the expression with columns of the block in place of its subqueries
    """
    with planning(tree):
        return _Unnesting(block, scope).value(tree)


class _Unnesting(SubqueryJoins):
    """The unnesting of one block's subqueries."""

    def __init__(self, block: Block, scope: Scope) -> None:
        super().__init__(block, scope)
        self.null_aware_anti_joins: list[tuple[Linear, exp.Expr]] = []
        """The rows of subqueries of NOT IN, and the values that must not be among them."""

    def finish(self) -> None:
        """Apply the conditions that NOT IN has besides its anti-join: an empty subquery, or no NULL on either side."""
        for node, left in self.null_aware_anti_joins:
            nothing, has_null = self.null_flags(node)
            known = exp.and_(exp.Not(this=has_null), is_not_null(left), copy=True)
            self.block.filter(exp.or_(nothing, known, copy=True))

    def apply_condition(self, condition: exp.Expr) -> None:
        """Keep the rows for which a condition with subqueries holds."""
        predicate = predicate_of(condition)
        if predicate is None:
            self.block.filter(self.value(condition, is_condition=True))
            return
        for part in self._left_sides(predicate):
            require_scalar(part)
        negated, query = is_negated(condition), query_of(predicate)
        if isinstance(predicate, exp.Exists):
            self._filter_by_exists(predicate, query, negated)
        else:
            self._filter_by_in(predicate, query, negated)

    def _left_sides(self, predicate: exp.Exists | exp.In) -> list[exp.Expr]:
        if isinstance(predicate, exp.Exists):
            return []
        left = predicate.this.unnest()
        return list(left.expressions) if isinstance(left, exp.Tuple) else [left]

    def _filter_by_exists(self, predicate: exp.Exists, query: exp.Query, negated: bool) -> None:
        if not self._is_correlated(query):
            there = self.exists_uncorrelated(query)
            self.block.filter(exp.Not(this=there) if negated else there)
            return
        split = correlation(query, self.scope, self.block.aliases)
        self.semi_join(split, predicate, split.correlated, negated=negated)

    def _filter_by_in(self, predicate: exp.In, query: exp.Query, negated: bool) -> None:
        lefts = self._left_sides(predicate)
        if self._is_correlated(query):
            split = correlation(query, self.scope, self.block.aliases)
            # NOT IN depends on all rows that are correlated with the outer row, IN only on those with equal values.
            equal = equalities(lefts, split.items) if split.is_plain and not negated else []
            self.semi_join(split, predicate, [*split.correlated, *equal], negated=negated)
            return
        node = self.rereadable(query)
        if _are_constants(lefts) and (not negated or len(lefts) == 1):
            there = self.has_row(lefts, node)
            self.block.filter(self._is_missing(lefts[0], node, there) if negated else there)
        elif not negated:
            self._join_or_semi_join(query, lefts, node)
        elif len(lefts) == 1:
            self.semi_join_on_values(lefts, node, negated=True)
            self.null_aware_anti_joins.append((node, lefts[0]))
        else:
            # In a row of several values, one may differ while the others are NULL.
            self.filter_over_all_rows(exp.Not(this=predicate.copy()), predicate, node)

    def _join_or_semi_join(self, query: exp.Query, lefts: list[exp.Expr], node: Linear) -> None:
        """Filter the block by ``lefts IN query``: with a join if the query's rows are distinct, otherwise with a semi-join."""
        alias = self.join(node) if is_unique(query) and self._have_types_of(lefts, node) else None
        if alias is None:
            self.semi_join_on_values(lefts, node, negated=False)
            return
        for left, name in zip(lefts, node.columns, strict=True):
            self.block.filter(exp.EQ(this=left.copy(), expression=column((alias, name))))

    def value(self, tree: exp.Expr, is_condition: bool = False) -> exp.Expr:
        """Return the expression with columns in place of its subqueries.

        :param is_condition: True if rows for which the expression is not true are not needed
        """
        require_deterministic(tree)
        for subquery in distinct(subquery_expressions(tree)):
            if isinstance(subquery, exp.In) and not in_condition(tree, subquery):
                return self._keyed_value(tree)
        needed = tree if is_condition else None
        for subquery in distinct(subquery_expressions(tree)):
            negated = any(isinstance(node, exp.Not) and node.this.unnest() == subquery for node in tree.walk())
            if isinstance(subquery, exp.In) and negated:
                tree = self._replace_in_and_not_in(tree, subquery)
            else:
                answer = self._column_for(subquery, needed)
                tree = substitute(tree, {subquery: answer})
        return tree

    def _column_for(self, subquery: exp.Expr, needed: exp.Expr | None) -> exp.Expr:
        query = query_of(subquery)
        if isinstance(subquery, exp.Exists):
            return self._exists_value(subquery, query)
        if isinstance(subquery, exp.In):
            return self._in_value(subquery, query)
        return self._scalar_value(subquery, query, needed)

    def _exists_value(self, subquery: exp.Exists, query: exp.Query) -> exp.Expr:
        if not self._is_correlated(query):
            return self.exists_uncorrelated(query)
        split = correlation(query, self.scope, self.block.aliases)
        return self.correlated_value(split, subquery, split.correlated)

    def _in_value(self, subquery: exp.In, query: exp.Query) -> exp.Expr:
        """Return a column that is true if IN is true. As in Spark, NULL counts as false here."""
        lefts = self._left_sides(subquery)
        for part in lefts:
            require_scalar(part)
        if self._is_correlated(query):
            split = correlation(query, self.scope, self.block.aliases)
            equal = equalities(lefts, split.items) if split.is_plain else []
            return self.correlated_value(split, subquery, [*split.correlated, *equal])
        node = self.rereadable(query)
        return self.has_row(lefts, node) if _are_constants(lefts) else self.membership(lefts, node)

    def _replace_in_and_not_in(self, tree: exp.Expr, subquery: exp.In) -> exp.Expr:
        """Return the expression with columns in place of one ``IN`` and of its negation."""
        query, lefts = query_of(subquery), self._left_sides(subquery)
        missing = next(node for node in tree.walk() if isinstance(node, exp.Not) and node.this.unnest() == subquery)
        if self._is_correlated(query):
            split = correlation(query, self.scope, self.block.aliases)
            tree = substitute(tree, {missing: self.correlated_value(split, missing, split.correlated)})
        elif len(lefts) == 1:
            for part in lefts:
                require_scalar(part)
            node = self.rereadable(query)
            there = self.has_row(lefts, node) if _are_constants(lefts) else self.membership(lefts, node)
            tree = substitute(tree, {missing: self._is_missing(lefts[0], node, there), subquery: there})
        else:
            return self._keyed_value(tree)
        return tree if subquery not in list(tree.walk()) else substitute(tree, {subquery: self._in_value(subquery, query)})

    def _is_missing(self, left: exp.Expr, node: Linear, there: exp.Expr) -> exp.Expr:
        """Return the condition that a value is not among the rows of a node of one column, with the NULL semantics of NOT IN.

        :param there: the condition that the value is among them, where NULL equals nothing
        """
        nothing, has_null = self.null_flags(node)
        known = exp.and_(exp.Not(this=has_null), is_not_null(left), exp.Not(this=there), copy=True)
        return exp.Paren(this=exp.or_(nothing, known, copy=True))

    def _scalar_value(self, subquery: exp.Expr, query: exp.Query, needed: exp.Expr | None) -> exp.Expr:
        if not self._is_correlated(query):
            node = self.rereadable(query)
            if not is_one_row(query):
                node = self.scalar(node, query)
            alias = self.join(node)
            return column((alias, node.columns[0]))
        split = correlation(query, self.scope, self.block.aliases)
        answer = self._join_grouped(split, subquery, needed)
        return answer if answer is not None else self.correlated_value(split, exp.Subquery(this=query.copy()), split.correlated)

    def _is_correlated(self, query: exp.Query) -> bool:
        return bool(free_sources(query))

    def _have_types_of(self, lefts: Sequence[exp.Expr], node: Linear) -> bool:
        """Return True if expressions of the block have exactly the types of a node's columns, so that comparisons need no cast."""
        if len(lefts) != len(node.columns):
            raise NotIncremental("IN with a row of another length has no incremental rule", lefts[0])
        kinds = self.types(lefts)
        return kinds == [kind for _, kind in self.builder.types(linear_to_sql(node))]

    def _join_grouped(self, split: Correlation, subquery: exp.Expr, needed: exp.Expr | None) -> exp.Expr | None:
        """Join the block with a correlated aggregate that is grouped by the correlated columns.

        :param split: the subquery
        :param subquery: the expression that contains it
        :param needed: the condition that reads the value, if any; if it rejects NULLs, an inner join is enough
        :returns: the value; None if the subquery is no such aggregate
        """
        query, pairs = split.whole, self._correlation_keys(split)
        if query is not split.core or not is_one_row(query) or pairs is None:
            return None
        item = query.expressions[0].unalias()
        calls = distinct(aggregate_calls(item))
        outer = free_sources(query)
        if len(query.expressions) != 1 or any(value_over_no_rows(call) is None or free_sources(call) & outer for call in calls):
            return None
        names = {call: f"r{at}" for at, call in enumerate(calls)}
        items: list[exp.Expr] = [exp.alias_(key.copy(), f"k{at}") for at, (_, key) in enumerate(pairs)]
        items += [exp.alias_(call.copy(), name) for call, name in names.items()]
        node = self.builder.rereadable(split.scope.linear(split.query(items, [key.copy() for _, key in pairs])))
        alias = self.builder.name("s")
        self.block.required = self.block.required | {(alias, name) for name in node.columns}
        joined_by = []
        for at, (condition, _) in enumerate(pairs):
            joined_by.append(type(condition)(this=condition.this, expression=column((alias, f"k{at}"))))
        values: dict[exp.Expr, exp.Expr] = {call: column((alias, name)) for call, name in names.items()}
        nulls = {values[call] for call in calls if value_over_no_rows(call) == "NULL"}
        answer = substitute(item, values)
        if needed is not None and rejects_nulls(substitute(needed, {subquery: answer}), nulls):
            self.block.add(alias, node)
            for condition in joined_by:
                self.block.filter(condition)
            return exp.Paren(this=answer)
        right = Block(self.builder, self.block.required)
        right.add(alias, node)
        outer_join(self.block, right, "LEFT", exp.and_(*joined_by, copy=True), subquery)
        zeros = {
            values[call]: exp.Coalesce(this=values[call].copy(), expressions=[exp.Literal.number(0)])
            for call in calls
            if value_over_no_rows(call) == "0"
        }
        return exp.Paren(this=substitute(answer, zeros))

    def _correlation_keys(self, split: Correlation) -> list[tuple[exp.Binary, exp.Expr]] | None:
        """Return the correlated conditions as equalities, or None if one is no equality or has no type that can be a key.

        Each has its outer side on the left; the inner side is in the common type.
        """
        outer, pairs = free_sources(split.whole), []
        for condition in split.correlated:
            inner = condition.unnest()
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
        query = split.query([exp.alias_(key.copy(), f"k{at}") for at, (_, key) in enumerate(pairs)])
        kinds = self.builder.types(split.scope.standalone(query)[0])
        typed: list[tuple[exp.Binary, exp.Expr]] = []
        for (condition, key), (_, kind), ours in zip(
            pairs, kinds, self.types([condition.left for condition, _ in pairs]), strict=True
        ):
            try:
                common = common_type(self.builder, [ours, kind])
            except NotIncremental:
                return None
            # Spark casts a text only when it compares it. Casting all texts beforehand could fail.
            if not is_key_type(common) or (kind == "string" and common != kind):
                return None
            typed.append((condition, key if common == kind else exp.cast(key.copy(), common, dialect="spark")))
        return typed

    def _keyed_value(self, tree: exp.Expr) -> exp.Expr:
        """Return the value of an expression with one IN where only Spark knows how NULL counts, as a column of the block."""
        subqueries = distinct(subquery_expressions(tree))
        subquery = subqueries[0]
        if len(subqueries) > 1 or not isinstance(subquery, exp.In) or self._is_correlated(query_of(subquery)):
            raise NotIncremental("this form of IN within an expression has no incremental rule", subquery)
        node, alias = self.rereadable(query_of(subquery)), self.builder.name("i")
        return self.keyed_value(alias, node, {}, substitute(tree, {subquery: self.in_over(subquery, alias, node)}), [])


def _are_constants(values: Sequence[exp.Expr]) -> bool:
    """Return True if values are the same for all rows."""
    return not any(value.find(exp.Column) for value in values)
