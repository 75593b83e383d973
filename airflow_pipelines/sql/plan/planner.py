"""The planner: decomposes a view's query into stages whose deltas are surely right, or says why it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from airflow_pipelines.sql.dialect import DIALECT, PipelineSpark, parse_query
from airflow_pipelines.sql.identifiers import quote
from airflow_pipelines.sql.plan.aggregates import Accumulators, aggregate_calls, linear_form
from airflow_pipelines.sql.plan.analyzer import AnalysisFailed, Analyzer
from airflow_pipelines.sql.plan.derivation import WEIGHT
from airflow_pipelines.sql.plan.nodes import (
    Aggregate,
    Call,
    ColumnTypes,
    Full,
    Item,
    Linear,
    Scan,
    Select,
    Source,
    Stage,
    UnionAll,
    ViewPlan,
)
from airflow_pipelines.sql.plan.plain import plain_aggregate, plain_linear

_SELECT_PARTS = frozenset({"with_", "kind", "expressions", "hint", "from_", "joins", "where", "group", "having", "order"})
_JOIN_PARTS = frozenset({"this", "on", "kind"})
_NOT_SCALAR = (exp.Query, exp.Subquery, exp.Exists, exp.Window, exp.Star, exp.Parameter, exp.Placeholder)
# fmt: off
_GENERATORS = frozenset({
    "explode", "explode_outer", "inline", "inline_outer", "json_tuple", "posexplode", "posexplode_outer", "stack",
})
_UNSTEADY = frozenset({
    "current_catalog", "current_database", "current_date", "current_schema", "current_time", "current_timestamp",
    "current_timezone", "current_user", "input_file_name", "localtimestamp", "monotonically_increasing_id", "now", "rand",
    "randn", "random", "randstr", "session_user", "shuffle", "spark_partition_id", "unix_timestamp", "user", "uuid", "uniform",
})
# fmt: on


class NotIncremental(Exception):
    """The query has a construct that the planner has no incremental rule for; the text says which."""


def plan_view(
    view: str,
    query: str,
    relations: Mapping[str, ColumnTypes],
    columns: ColumnTypes,
    reads: Sequence[str],
    analyzer: Analyzer,
) -> ViewPlan:
    """Plan a view.

    :param view: canonical name
    :param query: Spark SQL with folded names, as both strategies are to understand it (averages already rewritten)
    :param relations: columns of everything the query may read, by canonical name; declared to ``analyzer`` already
    :param columns: the view's columns; only their names matter, the query's columns are taken by position
    :param reads: the relations that the query names
    :param analyzer: answers about Spark's view of queries
    :returns: a plan that always has the full strategy, and stages of its own when every construct has an incremental rule
    :raises AnalysisFailed: when Spark refuses the query itself
    """
    types = (kind for _, kind in analyzer.columns(query))
    columns = tuple((name, kind) for (name, _), kind in zip(columns, types, strict=True))
    full = Stage(view, columns, Full(query, tuple(reads), "chosen"))
    try:
        stages = _Planner(view, relations, columns, analyzer).plan(query)
    except NotIncremental as error:
        full = replace(full, node=Full(query, tuple(reads), str(error)))
        return ViewPlan(view, query, columns, (full,), full, str(error))
    return ViewPlan(view, query, columns, stages, full)


@dataclass(slots=True)
class _Common:
    """A common table expression: its tree, what was visible to it, and its node once planned."""

    tree: exp.Expr
    visible: Mapping[str, _Common]
    node: Linear | None = None


@dataclass(slots=True)
class _Planner:
    view: str
    relations: Mapping[str, ColumnTypes]
    columns: ColumnTypes
    analyzer: Analyzer
    stages: list[Stage] = field(default_factory=list)

    def plan(self, query: str) -> tuple[Stage, ...]:
        tree = self._qualified(query)
        node = self._query(tree, {}, tuple(name for name, _ in self.columns))
        if isinstance(node, Scan):
            items = tuple(Item(name, f"`s`.{quote(column)}") for (name, _), column in zip(self.columns, node.columns, strict=True))
            node = Select((Source("s", node),), items)
        types = self._types(plain_aggregate(node) if isinstance(node, Aggregate) else plain_linear(node))
        if [kind for _, kind in types] != [kind for _, kind in self.columns]:
            raise NotIncremental("the plan's types differ from the query's")
        self.stages.append(Stage(self.view, self.columns, node))
        return tuple(self.stages)

    def _qualified(self, query: str) -> exp.Expr:
        """The query with every column qualified and every star expanded, if Spark still reads it as the same query."""
        # Types do not matter for resolving names, and Spark writes some that sqlglot does not know.
        known: dict[str, object] = {name: {column: "unknown" for column, _ in columns} for name, columns in self.relations.items()}
        dialect = PipelineSpark(normalization_strategy="case_sensitive")
        try:
            tree = parse_query(query)
            if any(isinstance(node, exp.Lateral | exp.Unnest) for node in tree.walk()):
                raise NotIncremental("LATERAL and UNNEST have no incremental rule yet")
            schema = MappingSchema(known, dialect=dialect, normalize=False)
            tree = qualify(tree, schema=schema, dialect=dialect, validate_qualify_columns=True, quote_identifiers=True)
        except NotIncremental:
            raise
        except Exception as error:
            # Besides its own errors, sqlglot raises ValueError, KeyError and the like for what it does not expect. Spark has
            # accepted the query, so that whatever sqlglot has against it only rules the symbolic way out.
            first = next(iter(str(error).splitlines()), type(error).__name__)
            raise NotIncremental(f"names could not be resolved symbolically: {first}") from error
        # sqlglot may print something else than it read; only a text that Spark optimises to the same plan may be taken apart.
        if not self.analyzer.same(query, tree.sql(dialect=DIALECT)):
            raise NotIncremental("the query could not be rewritten with qualified names and the same meaning")
        return tree

    def _types(self, query: str) -> ColumnTypes:
        try:
            types = self.analyzer.columns(query)
        except AnalysisFailed as error:
            raise NotIncremental(f"Spark does not accept the plan's text: {str(error).splitlines()[0]}") from error
        if any(" collate " in kind for _, kind in types):
            raise NotIncremental("text with a collation has no incremental rule yet")
        return types

    def _query(self, tree: exp.Expr, visible: Mapping[str, _Common], names: tuple[str, ...] | None) -> Linear | Aggregate:
        """Plan a query; ``names`` are the result's column names, None takes the query's own."""
        tree = _inner(tree)
        visible = self._commons(tree, visible)
        if isinstance(tree, exp.Union) and not tree.args.get("distinct"):
            return self._union(tree, visible, names)
        if isinstance(tree, exp.Select):
            return self._select(tree, visible, names)
        raise NotIncremental(f"{_kind(tree)} has no incremental rule yet")

    def _commons(self, tree: exp.Expr, visible: Mapping[str, _Common]) -> Mapping[str, _Common]:
        clause = tree.args.get("with_")
        if clause is None:
            return visible
        if clause.args.get("recursive"):
            raise NotIncremental("WITH RECURSIVE has no incremental rule yet")
        for common in clause.expressions:
            alias = common.args["alias"]
            if alias.columns:
                raise NotIncremental("a CTE with a column list has no incremental rule yet")
            visible = {**visible, alias.name: _Common(common.this, visible)}
        return visible

    def _union(self, tree: exp.Union, visible: Mapping[str, _Common], names: tuple[str, ...] | None) -> UnionAll:
        _only(tree, {"with_", "this", "expression", "distinct", "order"})
        parts: list[Linear] = []
        for side in (tree.this, tree.expression):
            node = self._linear(side, visible, None)
            # Spark widens types pair by pair from the left, and so do nested unions here.
            parts.append(node)
        found = self._types(" UNION ALL ".join(f"({plain_linear(part)})" for part in parts))
        return UnionAll(tuple(parts), tuple(zip(names or parts[0].columns, (kind for _, kind in found), strict=True)))

    def _linear(self, tree: exp.Expr, visible: Mapping[str, _Common], names: tuple[str, ...] | None) -> Linear:
        """Plan a query inside FROM or UNION: an aggregate becomes an internal relation, of which this gives the scan."""
        node = self._query(tree, visible, names)
        if not isinstance(node, Aggregate):
            return node
        columns = self._types(plain_aggregate(node))
        if len({name for name, _ in columns}) < len(columns):
            raise NotIncremental("a derived table has two columns of one name")
        relation = f"{self.view}${len(self.stages) + 1}"
        self.analyzer.declare({relation: columns})
        self.stages.append(Stage(relation, columns, node))
        return Scan(relation, tuple(name for name, _ in columns))

    def _select(self, tree: exp.Select, visible: Mapping[str, _Common], names: tuple[str, ...] | None) -> Select | Aggregate:
        _only(tree, _SELECT_PARTS)
        if tree.args.get("from_") is None:
            raise NotIncremental("SELECT without FROM has no incremental rule")
        outputs = [(item.alias_or_name, item.unalias()) for item in tree.expressions]
        if any(item.is_star for _, item in outputs):
            raise NotIncremental("the columns of a * could not be found symbolically")
        if names is not None:
            if len(names) != len(outputs):
                raise NotIncremental("an expression gives several columns")
            outputs = [(name, item) for name, (_, item) in zip(names, outputs, strict=True)]
        if len({name for name, _ in outputs}) < len(outputs):
            raise NotIncremental("a derived table has two columns of one name")
        sources, conditions = self._from(tree, visible)
        where = tree.args.get("where")
        if where is not None:
            conditions.append(where.this)
        for part in conditions:
            _require_scalar(part)
        text = " AND ".join(f"({part.sql(dialect=DIALECT)})" for part in conditions) or None
        having, group = tree.args.get("having"), tree.args.get("group")
        if group is not None or having is not None or any(True for _, item in outputs for _ in aggregate_calls(item)):
            return self._aggregate(sources, text, outputs, group, having.this if having is not None else None)
        for _, item in outputs:
            _require_scalar(item)
        return Select(sources, tuple(Item(name, item.sql(dialect=DIALECT)) for name, item in outputs), text)

    def _from(self, tree: exp.Select, visible: Mapping[str, _Common]) -> tuple[tuple[Source, ...], list[exp.Expr]]:
        sources = [self._source(tree.args["from_"].this, visible)]
        conditions: list[exp.Expr] = []
        for join in tree.args.get("joins") or []:
            _only(join, _JOIN_PARTS)
            if (join.args.get("kind") or "INNER").upper() not in {"INNER", "CROSS"}:
                raise NotIncremental(f"{join.args['kind']} JOIN has no incremental rule yet")
            sources.append(self._source(join.this, visible))
            if join.args.get("on") is not None:
                conditions.append(join.args["on"])
        if len({source.alias for source in sources}) < len(sources):
            raise NotIncremental("two sources of a join have one name")
        return tuple(sources), conditions

    def _source(self, table: exp.Expr, visible: Mapping[str, _Common]) -> Source:
        if isinstance(table, exp.Subquery):
            _only(table, {"this", "alias"})
            if not table.alias or table.args["alias"].columns:
                raise NotIncremental("a derived table with a column list has no incremental rule yet")
            return Source(table.alias, self._linear(table.this, visible, None))
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise NotIncremental(f"{_kind(table)} in FROM has no incremental rule yet")
        _only(table, {"this", "alias"})
        alias = table.args.get("alias")
        if alias is not None and alias.columns:
            raise NotIncremental("a table alias with a column list has no incremental rule yet")
        return Source(table.alias_or_name, self._named(table.name, visible))

    def _named(self, name: str, visible: Mapping[str, _Common]) -> Linear:
        common = visible.get(name)
        if common is not None:
            if common.node is None:
                common.node = self._linear(common.tree, common.visible, None)
            return common.node
        if name not in self.relations:
            raise NotIncremental(f"relation {name!r} could not be resolved symbolically")
        return Scan(name, tuple(column for column, _ in self.relations[name]))

    def _aggregate(
        self,
        sources: tuple[Source, ...],
        where: str | None,
        outputs: list[tuple[str, exp.Expr]],
        group: exp.Group | None,
        having: exp.Expr | None,
    ) -> Aggregate:
        above = [item for _, item in outputs] + ([having] if having is not None else [])
        for part in above:
            _require_scalar(part, aggregates=True)
            _require_no_generator(part)
        keys = _keys(group, [item for _, item in outputs])
        calls = _distinct([call for part in above for call in aggregate_calls(part)])
        fields = _distinct([column for part in [*keys, *calls] for column in part.find_all(exp.Column)])
        below = {field: exp.column(f"__c{at}") for at, field in enumerate(fields)}
        block = Select(sources, tuple(Item(f"__c{at}", field.sql(dialect=DIALECT)) for at, field in enumerate(fields)), where)
        key_items = tuple(Item(f"__k{at}", _text(key, below)) for at, key in enumerate(keys))
        named = {key: exp.column(f"__k{at}") for at, key in enumerate(keys)}
        named |= {call: exp.column(f"__r{at}") for at, call in enumerate(calls)}
        items = tuple(Item(name, _text(item, named)) for name, item in outputs)
        condition = _text(having, named) if having is not None else None
        inner_calls = [_substituted(call, below) for call in calls]
        forms = [linear_form(call) for call in inner_calls]
        input_types = self._input_types(block)
        arguments = [text for form in forms if form is not None for text in form.arguments if text != "*"]
        types = self._probe(block, [item.text for item in key_items], inner_calls, arguments)
        accumulators = Accumulators()
        finished = []
        for at, (call, form) in enumerate(zip(inner_calls, forms, strict=True)):
            result = types[f"r{at}"]
            value = None
            if form is not None:
                value = accumulators.value(form, tuple(types.get(text, "") for text in form.arguments), result)
            finished.append(Call(f"__r{at}", call.sql(dialect=DIALECT), result, value))
        key_types = tuple(types[f"k{at}"] for at in range(len(keys)))
        return Aggregate(block, key_items, key_types, tuple(finished), tuple(accumulators.found), items, condition, input_types)

    def _input_types(self, block: Select) -> tuple[str, ...]:
        """Types of an aggregate's input; it is consolidated by grouping, which some types do not allow."""
        types = tuple(kind for _, kind in self._types(plain_linear(block))) if block.items else ()
        if any("variant" in kind for kind in types):
            raise NotIncremental("aggregates over VARIANT have no incremental rule yet")
        return types

    def _probe(self, block: Select, keys: list[str], calls: list[exp.Expr], arguments: list[str]) -> dict[str, str]:
        """Types of keys (``k0`` ...), calls (``r0`` ...) and arguments (by text), as Spark sees them."""
        names: list[str] = []
        texts: list[str] = []
        for at, key in enumerate(keys):
            names.append(f"k{at}")
            texts.append(f"FIRST({key})")
        for at, call in enumerate(calls):
            names.append(f"r{at}")
            texts.append(call.sql(dialect=DIALECT))
        for argument in arguments:
            names.append(argument)
            texts.append(f"FIRST({argument})")
        if not texts:
            return {}
        items = ", ".join(f"{text} AS `p{at}`" for at, text in enumerate(texts))
        found = self._types(f"SELECT {items} FROM ({plain_linear(block)})")
        return {name: kind for name, (_, kind) in zip(names, found, strict=True)}


def _inner(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Subquery):
        _only(tree, {"this"})
        tree = tree.this
    return tree


def _kind(tree: exp.Expr) -> str:
    return {"Union": "UNION", "Intersect": "INTERSECT", "Except": "EXCEPT"}.get(type(tree).__name__, type(tree).__name__)


def _only(tree: exp.Expr, known: set[str] | frozenset[str]) -> None:
    for name, value in tree.args.items():
        if value and name not in known:
            raise NotIncremental(f"{name.strip('_').upper()} in {_kind(tree)} has no incremental rule yet")


def _require_scalar(tree: exp.Expr, aggregates: bool = False) -> None:
    for node in tree.walk():
        if isinstance(node, exp.Star) and isinstance(node.parent, exp.Count):
            continue
        if isinstance(node, _NOT_SCALAR):
            raise NotIncremental(f"{type(node).__name__} in an expression has no incremental rule yet")
        if isinstance(node, exp.Func) and (node.sql_name().lower() in _UNSTEADY or node.name.lower() in _UNSTEADY):
            raise NotIncremental(f"{node.sql_name()} gives another value at another time")
        if not aggregates and any(True for _ in aggregate_calls(node)):
            raise NotIncremental("an aggregate call outside of SELECT and HAVING has no incremental rule")


def _require_no_generator(tree: exp.Expr) -> None:
    """Refuse what gives several rows: an aggregate's items are evaluated inside CASE, where Spark does not allow it."""
    for node in tree.walk():
        if isinstance(node, exp.Func) and {node.sql_name().lower(), node.name.lower()} & _GENERATORS:
            raise NotIncremental(f"{node.sql_name()} over an aggregate has no incremental rule yet")


def _keys(group: exp.Group | None, outputs: list[exp.Expr]) -> list[exp.Expr]:
    if group is None:
        return []
    _only(group, {"expressions", "all"})
    if group.args.get("all"):
        if group.expressions:
            raise NotIncremental("GROUP BY ALL with expressions has no incremental rule")
        keys = [item for item in outputs if not any(True for _ in aggregate_calls(item))]
        if not keys:
            raise NotIncremental("GROUP BY ALL without keys has no incremental rule")
    else:
        keys = list(group.expressions)
    found = []
    for key in keys:
        inner = key.unnest()
        if isinstance(inner, exp.Literal) and inner.is_int:
            inner = outputs[int(inner.name) - 1].unnest()
        if isinstance(inner, exp.Tuple | exp.Cube | exp.Rollup | exp.GroupingSets):
            raise NotIncremental("grouping sets have no incremental rule yet")
        _require_scalar(inner)
        found.append(inner)
    if not found:
        raise NotIncremental("GROUP BY () has no incremental rule yet")
    return _distinct(found)


def _distinct(trees: list[exp.Expr]) -> list[exp.Expr]:
    return list(dict.fromkeys(trees))


def _substituted(tree: exp.Expr, names: Mapping[exp.Expr, exp.Expr]) -> exp.Expr:
    """``tree`` with every (topmost) subtree that is in ``names`` replaced. Raises NotIncremental when a column is left."""

    def visit(node: exp.Expr) -> exp.Expr:
        return names[node].copy() if node in names else node

    if tree in names:
        return names[tree].copy()
    result = tree.copy().transform(visit, copy=False)
    for column in result.find_all(exp.Column):
        if not column.name.startswith("__"):
            raise NotIncremental(f"{column.sql(dialect=DIALECT)} is neither grouped nor aggregated as far as the planner sees")
    return result


def _text(tree: exp.Expr, names: Mapping[exp.Expr, exp.Expr]) -> str:
    return _substituted(tree, names).sql(dialect=DIALECT)


__all__ = ["WEIGHT", "NotIncremental", "plan_view"]
