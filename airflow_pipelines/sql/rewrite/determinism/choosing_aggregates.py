"""The rewrite that makes MAX_BY, MIN_BY and MODE choose among ties by value."""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.rows.spark_types import UNKNOWN
from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.probe import types_in
from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker, mentions
from airflow_pipelines.sql.syntax.dialect import parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited
from airflow_pipelines.sql.values.total_order import sortable

_CHOICES = frozenset({"max_by", "min_by", "mode"})


def deterministic_choices(query: Edited, analyzer: Analyzer) -> Edited:
    """Make MAX_BY, MIN_BY and MODE choose the same value for any order of rows.

    Of several values with the greatest (least) key, MAX_BY takes the greatest (MIN_BY the least); NULL is the least value. Of
    several most frequent values, MODE takes the least.

    :param query: Spark SQL that Spark accepts
    :param analyzer: the analyzer, which knows the relations that the query reads
    """
    if not mentions(query.text, *_CHOICES):
        return query
    walker = TokenWalker(query.text)
    calls = [call for call in walker.calls() if call.name.lower() in _CHOICES]
    if not calls:
        return query
    nodes = {}
    for node in parse_query(query.text).find_all(exp.ArgMax, exp.ArgMin):
        # The parser keeps no position of these calls, but positions of the parts in them.
        inside = min((part.meta["start"] for part in node.walk() if "start" in part.meta), default=-1)
        around = [call for call in calls if call.start < inside < call.end]
        if around:
            nodes[max(around, key=lambda call: call.start).start] = node
    edits = []
    for call in calls:
        if call.name.lower() == "mode":
            edits += _mode(call, walker)
        elif len(call.arguments) == 2:
            edits += _by(call, nodes.get(call.start), walker, analyzer)
    return query.edit(edits)


def _mode(call: CallTokens, walker: TokenWalker) -> list[Edit]:
    if len(call.arguments) != 1 or walker.word(call.close + 1) == "within":
        return []
    end = call.arguments[0][1]
    return [Edit(end, end, ", TRUE")]


def _by(call: CallTokens, node: exp.Expr | None, walker: TokenWalker, analyzer: Analyzer) -> list[Edit]:
    (first, last), (start, end) = call.arguments
    value, key = walker.piece(first, last), walker.piece(start, end)
    select = node.find_ancestor(exp.Select) if node is not None else None
    kinds = types_in(select, [value], analyzer) if select is not None else None
    tie = sortable(value, kinds[0] if kinds else UNKNOWN)
    return [Edit(start, end, f"CASE WHEN ({key}) IS NOT NULL THEN STRUCT({key}, {tie}) END")]
