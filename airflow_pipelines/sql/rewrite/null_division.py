"""The rewrite of DIV_NULL(a, b): a division that gives NULL for a zero divisor, and an integer for integers."""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.rows.spark_types import spark_type
from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.probe import select_at, types_in
from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker, mentions
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited

_NAME = "div_null"
_ADVICE = "write a DIV NULLIF(b, 0) for a whole number, a / NULLIF(b, 0) otherwise"


def null_divisions(query: Edited, analyzer: Analyzer) -> Edited:
    """Rewrite each call of DIV_NULL.

    :param query: folded text that parses
    :param analyzer: the analyzer, which knows the relations that the query reads
    :raises SyntaxFailure: if Spark cannot determine the types of the operands; offsets are those of the query as first written
    """
    while mentions(query.text, _NAME):
        walker = TokenWalker(query.text)
        calls = [call for call in walker.calls() if call.name == _NAME and len(call.arguments) == 2]
        if not calls:
            break
        # The last call contains no other.
        query = query.edit([_edit(query, walker, calls[-1], analyzer)])
    return query


def _edit(query: Edited, walker: TokenWalker, call: CallTokens, analyzer: Analyzer) -> Edit:
    left, right = (walker.piece(*argument) for argument in call.arguments)
    kinds = types_in(select_at(parse_query(query.text), call.start, call.end) or exp.Select(), [left, right], analyzer)
    if kinds is None:
        raise SyntaxFailure(*query.origin(call.start, call.end), f"The types that DIV_NULL divides are not known here: {_ADVICE}")
    operator = "DIV" if all(spark_type(kind).is_integer for kind in kinds) else "/"
    return Edit(call.start, call.end, f"(({left}) {operator} NULLIF({right}, 0))")
