"""The joins with which a block evaluates subqueries: inner joins, semi-joins, anti-joins and keyed stages."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.plan.blocks.group_by import aggregate
from airflow_pipelines.sql.plan.blocks.groups import Groups
from airflow_pipelines.sql.plan.blocks.outer_joins import equal_pairs
from airflow_pipelines.sql.plan.blocks.query_blocks import Block, ColumnRef, column, is_key_type, key_types, without_source
from airflow_pipelines.sql.plan.decorrelate.correlation import Correlation, is_plain
from airflow_pipelines.sql.plan.decorrelate.subquery_predicates import equalities
from airflow_pipelines.sql.plan.expressions import NotIncremental, distinct, sql, substitute
from airflow_pipelines.sql.plan.ir.affected_keys import AffectedKeys, KeyedSource, Shape
from airflow_pipelines.sql.plan.ir.expression import Expression, QueryExpression
from airflow_pipelines.sql.plan.ir.linear import Linear
from airflow_pipelines.sql.plan.ir.to_sql import linear_to_sql
from airflow_pipelines.sql.plan.scope import Scope
from airflow_pipelines.sql.syntax.aggregate_calls import aggregate_calls


class SubqueryJoins:
    """The joins of one block with its subqueries."""

    def __init__(self, block: Block, scope: Scope) -> None:
        """Start with the block as it is.

        :param block: the outer rows
        :param scope: the scope of the block
        """
        self.block = block
        self.scope = scope
        self.builder = block.builder

    def rereadable(self, query: exp.Query) -> Linear:
        """Return an uncorrelated subquery as a node that is cheap to read more than once."""
        return self.builder.rereadable(self.scope.linear(query))

    def join(self, node: Linear) -> str:
        """Join a node to the block.

        :returns: the name by which the block reads it
        """
        alias = self.builder.name("s")
        self.block.required = self.block.required | {(alias, name) for name in node.columns}
        self.block.add(alias, node)
        return alias

    def scalar(self, node: Linear, written: exp.Expr) -> Linear:
        """Return the value of a scalar subquery: NULL if it has no row; Spark raises an error if it has several.

        :param node: the rows of the subquery
        :param written: the subquery as written in the query
        """
        alias = self.builder.name("i")
        query = QueryExpression(f"SELECT (SELECT {quote(node.columns[0])} FROM {quote(alias)}) AS v")
        reason = self.builder.places.reason("there is an error when the subquery has several rows", written)
        return self.builder.stage(AffectedKeys((KeyedSource(alias, node, ()),), query, ("v",), (), Shape.SUBQUERY, reason=reason))

    def _totals(self, node: Linear, outputs: list[tuple[str, exp.Expr]], alias: str) -> Linear:
        """Return one row of aggregates over all rows of a node, which the expressions read as ``alias``."""
        rows = Block(self.builder, frozenset((alias, name) for name in node.columns))
        rows.add(alias, node)
        calls = distinct(call for _, tree in outputs for call in aggregate_calls(tree))
        return self.builder.stage(aggregate(rows, Groups([], calls), outputs, None))

    def exists_uncorrelated(self, query: exp.Query) -> exp.Expr:
        """Return a column that is true if an uncorrelated subquery has any row; its source has one row."""
        if isinstance(query, exp.Select) and is_plain(query):
            query = query.copy()
            query.set("expressions", [exp.alias_(exp.Literal.number(1), "one")])
        count = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
        node = self._totals(self.scope.linear(query), [("there", count)], self.builder.name("i"))
        return column((self.join(node), "there"))

    def has_row(self, values: Sequence[exp.Expr], node: Linear) -> exp.Expr:
        """Return a column that is true if constants are a row of a node; its source has one row. NULL equals nothing."""
        alias = self.builder.name("i")
        equal = exp.and_(*equalities(values, [column((alias, name)) for name in node.columns]), copy=True)
        there = exp.GT(this=exp.CountIf(this=equal), expression=exp.Literal.number(0))
        return column((self.join(self._totals(node, [("there", there)], alias)), "there"))

    def null_flags(self, node: Linear) -> tuple[exp.Expr, exp.Expr]:
        """Return two columns of a source of one row: true if a node of one column has no row, and true if it has a NULL."""
        alias = self.builder.name("i")
        nothing = exp.EQ(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
        is_null = exp.Is(this=column((alias, node.columns[0])), expression=exp.Null())
        has_null = exp.GT(this=exp.CountIf(this=is_null), expression=exp.Literal.number(0))
        totals = self._totals(node, [("nothing", nothing), ("has_null", has_null)], alias)
        flags = self.join(totals)
        return column((flags, "nothing")), column((flags, "has_null"))

    def types(self, trees: Sequence[exp.Expr]) -> list[str]:
        """Return the types of expressions over the block."""
        outputs = [(f"t{at}", tree) for at, tree in enumerate(trees)]
        return [kind for _, kind in self.builder.types(linear_to_sql(self.block.select(outputs)))]

    def semi_join(self, split: Correlation, subquery: exp.Expr, correlations: Sequence[exp.Expr], *, negated: bool) -> None:
        """Keep the rows for which a correlated EXISTS or IN holds.

        :param split: the correlation in the subquery
        :param subquery: the EXISTS or IN
        :param correlations: the conditions that connect the subquery with the outer query
        :param negated: True to keep the rows for which it does not hold
        """
        node, names = split.rows()
        alias = self.builder.name("i")
        condition = substitute(subquery, {split.whole: split.over(alias, names)})
        self._become_keyed(alias, node, names, exp.Not(this=condition) if negated else condition, correlations, value=None)

    def correlated_value(self, split: Correlation, subquery: exp.Expr, correlations: Sequence[exp.Expr]) -> exp.Expr:
        """Return the value of an expression with one correlated subquery, as a column of the block.

        :param split: the correlation in the subquery
        :param subquery: the expression
        :param correlations: the conditions that connect the subquery with the outer query
        """
        node, names = split.rows()
        alias = self.builder.name("i")
        tree = substitute(subquery, {split.whole: split.over(alias, names)})
        return self.keyed_value(alias, node, names, tree, correlations)

    def semi_join_on_values(self, lefts: Sequence[exp.Expr], node: Linear, *, negated: bool) -> None:
        """Keep the rows whose values are among a node's rows. NULL equals nothing.

        :param lefts: the values, one for each column of the node
        :param node: the rows of the subquery
        :param negated: True to keep the rows whose values are not among them
        """
        alias = self.builder.name("i")
        exists, names, correlations = self._membership(lefts, node, alias)
        self._become_keyed(alias, node, names, exp.Not(this=exists) if negated else exists, correlations, value=None)

    def membership(self, lefts: Sequence[exp.Expr], node: Linear) -> exp.Expr:
        """Return a column of the block that is true if values are among a node's rows. NULL equals nothing."""
        alias = self.builder.name("i")
        exists, names, correlations = self._membership(lefts, node, alias)
        return self.keyed_value(alias, node, names, exists, correlations)

    def _membership(
        self, lefts: Sequence[exp.Expr], node: Linear, alias: str
    ) -> tuple[exp.Expr, dict[ColumnRef, str], list[exp.Expr]]:
        names: dict[ColumnRef, str] = {(alias, name): name for name in node.columns}
        correlations = equalities(lefts, [column(place) for place in names])
        query = exp.Select(expressions=[exp.Literal.number(1)]).from_(exp.to_identifier(alias, quoted=True))
        return exp.Exists(this=query.where(*correlations)), names, correlations

    def filter_over_all_rows(self, condition: exp.Expr, predicate: exp.In, node: Linear) -> None:
        """Keep the rows for which a condition with one IN holds, where every row of the node may affect every outer row.

        :param condition: the condition
        :param predicate: the IN in it
        :param node: the rows of the IN's subquery
        """
        alias = self.builder.name("i")
        condition = substitute(condition, {predicate: self.in_over(predicate, alias, node)})
        self._become_keyed(alias, node, {}, condition, [], value=None)

    def in_over(self, predicate: exp.In, alias: str, node: Linear) -> exp.Expr:
        """Return the same IN over the rows of a node, which it reads as ``alias``."""
        columns = [exp.column(name, table=alias, quoted=True) for name in node.columns]
        query = exp.Select(expressions=columns).from_(exp.to_identifier(alias, quoted=True))
        return exp.In(this=predicate.this.copy(), query=exp.Subquery(this=query))

    def keyed_value(
        self, alias: str, node: Linear, names: dict[ColumnRef, str], tree: exp.Expr, correlations: Sequence[exp.Expr]
    ) -> exp.Expr:
        """Return the value of an expression with one subquery, as a column of the block.

        See :meth:`_become_keyed` for the parameters.
        """
        value = (self.builder.name("v"), "v")
        self._become_keyed(alias, node, names, tree, correlations, value)
        return column(value)

    def _become_keyed(
        self,
        alias: str,
        node: Linear,
        names: dict[ColumnRef, str],
        tree: exp.Expr,
        correlations: Sequence[exp.Expr],
        value: ColumnRef | None,
    ) -> None:
        """Replace the block by a keyed stage that evaluates one subquery.

        :param alias: the name by which ``tree`` reads the subquery's rows
        :param node: the subquery's rows
        :param names: the columns of these rows that ``correlations`` read, and their names in the node
        :param tree: the condition or, with ``value``, the expression that the stage evaluates for each row of the block
        :param correlations: the conditions that correlate both; the equalities among them are the stage's keys
        :param value: the query's name of the expression; None to keep the rows for which it is true
        """
        outer_alias = self.builder.name("o")
        left, left_names = self.block.as_node()
        trees: dict[exp.Expr, exp.Expr] = {column(place): column((outer_alias, name)) for place, name in left_names.items()}
        reason = None
        pairs = equal_pairs(correlations, (left, left_names), (node, names), self.block)
        if pairs:
            own, other = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
        else:
            own, other = self._columns_read(tree, left_names), ()
            if not own or not all(map(is_key_type, key_types(self.builder, left, own))):
                raise NotIncremental("a subquery that no equality correlates with its query has no incremental rule", tree)
            why = "a subquery that no equality correlates with its query is evaluated again for every row"
            reason = self.builder.places.reason(why, correlations[0] if correlations else tree)
        kept = {place: f"c{at}" for at, place in enumerate(left_names)}
        items = [f"{quote(outer_alias)}.{quote(name)} AS {kept[place]}" for place, name in left_names.items()]
        text = sql(substitute(tree, trees))
        where = f" WHERE {text}" if value is None else ""
        if value is not None:
            kept[value] = f"c{len(kept)}"
            items.append(f"{text} AS {kept[value]}")
        query = f"SELECT {', '.join(items) or '1 AS c0'} FROM {quote(outer_alias)}{where}"
        pieces = (KeyedSource(outer_alias, left, own), KeyedSource(alias, node, other))
        self.block.replace_by_keyed(pieces, QueryExpression(query), kept or {("", ""): "c0"}, Shape.SUBQUERY, reason)

    def _columns_read(self, tree: exp.Expr, names: dict[ColumnRef, str]) -> tuple[Expression, ...]:
        """Return the block's columns that an expression reads, under their names in the block's node."""
        columns = distinct(tree.find_all(exp.Column))
        return tuple(
            without_source(exp.column(names[(part.table, part.name)]))
            for part in columns
            if isinstance(part, exp.Column) and (part.table, part.name) in names
        )
