"""Subqueries in expressions: each becomes a stage that is joined to the rows that ask, or one keyed by what ties it to them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from airflow_pipelines.sql.plan.clauses.aggregate_calls import aggregate_calls
from airflow_pipelines.sql.plan.clauses.outer_joins import outer_join
from airflow_pipelines.sql.plan.clauses.query_blocks import Block, column, common_type, is_key_type
from airflow_pipelines.sql.plan.decorrelate.correlation import Correlation, correlation, is_one_row
from airflow_pipelines.sql.plan.decorrelate.subquery_joins import Asking
from airflow_pipelines.sql.plan.decorrelate.subquery_predicates import (
    equalities,
    has_subquery,
    holders,
    in_condition,
    is_negated,
    is_not_null,
    is_unique,
    needs_one_of,
    over_nothing,
    query_of,
    question_of,
)
from airflow_pipelines.sql.plan.expressions import (
    NotIncremental,
    conjuncts,
    distinct,
    require_scalar,
    require_steady,
    substituted,
)
from airflow_pipelines.sql.plan.ir.nodes import Linear
from airflow_pipelines.sql.plan.ir.to_sql import plain_linear
from airflow_pipelines.sql.plan.passes.qualify import free_sources
from airflow_pipelines.sql.plan.scope import Scope


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
    for part in sorted(asking, key=lambda part: question_of(part) is None):
        asker.keep(part)
    asker.finish()


def answered(block: Block, scope: Scope, tree: exp.Expr) -> exp.Expr:
    """The expression with columns of the block in place of its subqueries; the block gets what gives these columns."""
    return _Asker(block, scope).value(tree)


class _Asker(Asking):
    """Answers one block's subqueries."""

    def __init__(self, block: Block, scope: Scope) -> None:
        super().__init__(block, scope)
        self.unsure: list[tuple[Linear, exp.Expr]] = []
        """The rows of subqueries after NOT IN, and what must not be among them."""

    def finish(self) -> None:
        """Apply what is left of the conditions, once nothing else has to be asked."""
        for node, left in self.unsure:
            nothing, has_null = self.flags(node)
            known = exp.and_(exp.Not(this=has_null), is_not_null(left), copy=True)
            self.block.filter(exp.or_(nothing, known, copy=True))

    def keep(self, condition: exp.Expr) -> None:
        """Keep the rows for which a condition with subqueries holds."""
        question = question_of(condition)
        if question is None:
            self.block.filter(self.value(condition, is_condition=True))
            return
        for part in self._left_sides(question):
            require_scalar(part)
        negated, query = is_negated(condition), query_of(question)
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
            there = self.exists_at_all(query)
            self.block.filter(exp.Not(this=there) if negated else there)
            return
        found = correlation(query, self.scope, self.block.aliases)
        self.ask(found, question, found.tied, negated=negated)

    def _keep_found(self, question: exp.In, query: exp.Query, negated: bool) -> None:
        lefts = self._left_sides(question)
        if self._is_correlated(query):
            found = correlation(query, self.scope, self.block.aliases)
            # NOT IN depends on all rows that are tied to the one that asks, IN only on those that are equal.
            equal = equalities(lefts, found.items) if found.is_plain and not negated else []
            self.ask(found, question, [*found.tied, *equal], negated=negated)
            return
        node = self.kept(query)
        if not negated:
            self._join_or_ask(query, lefts, node)
        elif len(lefts) == 1:
            self.ask_values(lefts, node, negated=True)
            self.unsure.append((node, lefts[0]))
        else:
            # A row of several values may be unlike another one in one value and unknown in the others.
            self.ask_all(exp.Not(this=question.copy()), question, node)

    def _join_or_ask(self, query: exp.Query, lefts: list[exp.Expr], node: Linear) -> None:
        """``lefts IN query``: a join when the query gives no row twice."""
        alias = self.join(node) if is_unique(query) and self._have_types_of(lefts, node) else None
        if alias is None:
            self.ask_values(lefts, node, negated=False)
            return
        for left, name in zip(lefts, node.columns, strict=True):
            self.block.filter(exp.EQ(this=left.copy(), expression=column((alias, name))))

    def value(self, tree: exp.Expr, is_condition: bool = False) -> exp.Expr:
        """The expression with columns in place of its subqueries.

        :param is_condition: rows for which the expression is not true are not needed
        """
        require_steady(tree)
        for holder in distinct(holders(tree)):
            if isinstance(holder, exp.In) and not in_condition(tree, holder):
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
        query = query_of(holder)
        if isinstance(holder, exp.Exists):
            return self._existence(holder, query)
        if isinstance(holder, exp.In):
            return self._finding(holder, query)
        return self._scalar(holder, query, needed)

    def _existence(self, holder: exp.Exists, query: exp.Query) -> exp.Expr:
        if not self._is_correlated(query):
            return self.exists_at_all(query)
        found = correlation(query, self.scope, self.block.aliases)
        return self.ask_for(found, holder, found.tied)

    def _finding(self, holder: exp.In, query: exp.Query) -> exp.Expr:
        """Whether IN is true; as Spark does, what is unknown counts as false here."""
        lefts = self._left_sides(holder)
        for part in lefts:
            require_scalar(part)
        if self._is_correlated(query):
            found = correlation(query, self.scope, self.block.aliases)
            equal = equalities(lefts, found.items) if found.is_plain else []
            return self.ask_for(found, holder, [*found.tied, *equal])
        return self.value_among(lefts, self.kept(query))

    def _found_values(self, tree: exp.Expr, holder: exp.In) -> exp.Expr:
        """The expression with columns in place of one ``IN``, and of its negation where that is what the expression asks for."""
        query, lefts = query_of(holder), self._left_sides(holder)
        missing = next(node for node in tree.walk() if isinstance(node, exp.Not) and node.this.unnest() == holder)
        if self._is_correlated(query):
            found = correlation(query, self.scope, self.block.aliases)
            tree = substituted(tree, {missing: self.ask_for(found, missing, found.tied)})
        elif len(lefts) == 1:
            for part in lefts:
                require_scalar(part)
            node = self.kept(query)
            there = self.value_among(lefts, node)
            nothing, has_null = self.flags(node)
            known = exp.and_(exp.Not(this=has_null), is_not_null(lefts[0]), exp.Not(this=there), copy=True)
            tree = substituted(tree, {missing: exp.Paren(this=exp.or_(nothing, known, copy=True)), holder: there})
        else:
            return self._whole(tree)
        return tree if holder not in list(tree.walk()) else substituted(tree, {holder: self._finding(holder, query)})

    def _scalar(self, holder: exp.Expr, query: exp.Query, needed: exp.Expr | None) -> exp.Expr:
        if not self._is_correlated(query):
            node = self.kept(query)
            if not is_one_row(query):
                node = self.single(node)
            alias = self.join(node)
            return column((alias, node.columns[0]))
        found = correlation(query, self.scope, self.block.aliases)
        answer = self._grouped(found, holder, needed)
        return answer if answer is not None else self.ask_for(found, exp.Subquery(this=query.copy()), found.tied)

    def _is_correlated(self, query: exp.Query) -> bool:
        return bool(free_sources(query))

    def _have_types_of(self, lefts: Sequence[exp.Expr], node: Linear) -> bool:
        """Whether expressions of the block have exactly the types of a node's columns, so that equal is equal for both."""
        if len(lefts) != len(node.columns):
            raise NotIncremental("IN with a row of another length has no incremental rule")
        kinds = self.types(lefts)
        return kinds == [kind for _, kind in self.builder.types(plain_linear(node))]

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
        if len(query.expressions) != 1 or any(over_nothing(call) is None or free_sources(call) & outer for call in calls):
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
        nulls = {values[call] for call in calls if over_nothing(call) == "NULL"}
        answer = substituted(item, values)
        if needed is not None and needs_one_of(substituted(needed, {holder: answer}), nulls):
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
            if over_nothing(call) == "0"
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
        for (tie, key), (_, kind), ours in zip(pairs, kinds, self.types([tie.left for tie, _ in pairs]), strict=True):
            try:
                common = common_type(self.builder, [ours, kind])
            except NotIncremental:
                return None
            if not is_key_type(common):
                return None
            typed.append((tie, key if common == kind else exp.cast(key.copy(), common, dialect="spark")))
        return typed

    def _whole(self, tree: exp.Expr) -> exp.Expr:
        """An expression with one IN at a place where only Spark knows how it takes what is unknown, as a column."""
        found = distinct(holders(tree))
        holder = found[0]
        if len(found) > 1 or not isinstance(holder, exp.In) or self._is_correlated(query_of(holder)):
            raise NotIncremental("this form of IN within an expression has no incremental rule")
        node, alias = self.kept(query_of(holder)), self.builder.name("i")
        return self.become_valued(alias, node, {}, substituted(tree, {holder: self.reading(holder, alias, node)}), [])
