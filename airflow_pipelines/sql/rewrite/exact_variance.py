"""The rewrite of variances of integers and decimals to exact sums, which do not depend on the order of rows."""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.rows.spark_types import spark_type
from airflow_pipelines.sql.plan.analyzer import Analyzer
from airflow_pipelines.sql.rewrite.probe import types_in
from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker, mentions
from airflow_pipelines.sql.syntax.dialect import parse_query
from airflow_pipelines.sql.syntax.edits import Edit, Edited

_SAMPLES = {
    "std": True, "stddev": True, "stddev_samp": True, "stddev_pop": False, "variance": True, "var_samp": True, "var_pop": False,
}  # fmt: skip
"""The functions, each with True if it divides by one less than the number of values."""
_SAFE_DIGITS = 19
"""The number of digits whose squares fit into the 38 digits of a decimal."""
_SAFE_SCALE = 4
"""The scale up to which more digits are allowed: columns such as DECIMAL(38,2) seldom use all of their digits."""


def exact_variance(query: Edited, analyzer: Analyzer) -> Edited:
    """Rewrite STDDEV and VARIANCE over integers and decimals to COUNT(x), SUM(x) and SUM(x * x).

    For x without its decimal point, q the rounded mean and r = SUM(x) - n*q, the sum of squares about the mean is
    SUM((x - q)^2) - r*r/n, of which everything but the last part is exact. Spark itself adds floating-point numbers, so that the
    last digits depend on the order of rows. FILTER and OVER are kept. DISTINCT, floating-point arguments, and decimals whose
    squares have too many digits are left to Spark.

    :param query: Spark SQL that Spark accepts
    :param analyzer: the analyzer, which knows the relations that the query reads
    """
    if not mentions(query.text, "std", "var"):
        return query
    walker = TokenWalker(query.text)
    calls = [call for call in walker.calls() if call.name in _SAMPLES and len(call.arguments) == 1]
    if not calls:
        return query
    selects: dict[int, exp.Select] = {}
    for node in parse_query(query.text).walk():
        if "start" in node.meta and (select := node.find_ancestor(exp.Select)) is not None:
            selects.setdefault(node.meta["start"], select)
    edits = []
    for call in calls:
        inner = [other for other in calls if other is not call and call.start < other.start < call.end]
        select = next((selects[at] for at in sorted(selects) if call.start <= at < call.end), None)
        if select is None or inner:
            continue
        edit = _edit(walker, call, select, analyzer)
        edits += [edit] if edit is not None else []
    return query.edit(edits)


def _edit(walker: TokenWalker, call: CallTokens, select: exp.Select, analyzer: Analyzer) -> Edit | None:
    value = walker.piece(*call.arguments[0])
    kinds = None if value.lower().startswith("distinct ") else types_in(select, [value], analyzer)
    number = _number(kinds[0]) if kinds else None
    if number is None:
        return None
    digits, scale = number
    last = _end_of_suffix(walker, call.close)
    suffix = walker.piece(walker.end(call.close), walker.end(last))
    whole = f"CAST(({value}) * {10**scale} AS DECIMAL({digits},0))" if scale else f"CAST({value} AS DECIMAL({digits},0))"
    count, total, squares = f"COUNT({value}){suffix}", f"SUM({whole}){suffix}", f"SUM({whole} * {whole}){suffix}"
    mean = f"CAST({total} / NULLIF({count}, 0) AS DECIMAL({digits},0))"
    rest = f"({total} - CAST({count} AS DECIMAL(12,0)) * {mean})"
    spread = f"(CAST({squares} - {mean} * ({total} + {rest}) AS DOUBLE) - POWER(CAST({rest} AS DOUBLE), 2) / NULLIF({count}, 0))"
    divisor = f"NULLIF({count} - 1, 0)" if _SAMPLES[call.name] else f"NULLIF({count}, 0)"
    answer = f"({spread} / {divisor} / 1{2 * scale * '0'}D)" if scale else f"({spread} / {divisor})"
    return Edit(call.start, walker.end(last), f"SQRT{answer}" if call.name.startswith("std") else answer)


def _number(kind: str) -> tuple[int, int] | None:
    """Return the digits and the scale of a type whose squares are exact decimals."""
    number = spark_type(kind)
    if number.is_integer:
        digits, scale = len(str(number.bounds[1])), 0
    else:
        digits, scale = (number.precision or 0, number.scale or 0) if number.is_decimal else (0, 0)
    return (digits, scale) if digits and (digits <= _SAFE_DIGITS or scale <= _SAFE_SCALE) else None


def _end_of_suffix(walker: TokenWalker, at: int) -> int:
    """Return the last token of the FILTER and OVER clauses behind token ``at``."""
    while walker.word(at + 1) in {"filter", "over"}:
        if walker.word(at + 2) == "(":
            at = walker.closing(at + 2) or at + 2
        elif walker.word(at + 1) == "over":
            at += 2
        else:
            break
    return at
