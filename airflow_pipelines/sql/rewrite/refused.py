"""The refusal of calls that Spark cannot run, and of functions of other systems, with advice for a replacement."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_pipelines.sql.rewrite.json_calls import EACH, JSON_CALLS
from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker


class CallRefused(Exception):
    """The error that a call is wrong, or that its function does not exist. Offsets are those of the text, ``end`` exclusive."""

    def __init__(self, start: int, end: int, message: str) -> None:
        super().__init__(message)
        self.start = start
        self.end = end
        self.message = message


_FUNCTION = "write it as a function in Python (CREATE FUNCTION without an expression)"
ADVICE: Mapping[str, str] = {
    "blackbox": "remove it",
    "json_keys": f"MAP_KEYS(CAST(v AS MAP<STRING, VARIANT>)) gives the keys of one level; for all levels {_FUNCTION}",
    "variant_deep_filter": f"VARIANT_FILTER looks at one level; for all levels {_FUNCTION}",
    "variant_deep_map": f"VARIANT_MAP changes one level; for all levels {_FUNCTION}",
    "variant_merge": _FUNCTION,
    "xxhash": "XXHASH64 is Spark's",
}
"""Functions that do not exist, with advice for a replacement."""
_COMPARISONS = frozenset({"<", "<=", "<>", "!=", "=", ">", ">="})
_EXTREMES = "compare with the greatest or least value, such as x > (SELECT MAX(a) FROM t)"
MEMBERSHIP: Mapping[tuple[str, str], str] = {
    ("=", "any"): "IN", ("=", "some"): "IN", ("<>", "all"): "NOT IN", ("!=", "all"): "NOT IN",
}  # fmt: skip
"""Comparisons with all or any values of a query that have another name in Spark."""


def _advice(call: CallTokens) -> str:
    if call.name.startswith(EACH) and call.name not in JSON_CALLS:
        kinds = sorted(name.removeprefix(EACH).upper() for name in JSON_CALLS if name.startswith(EACH))
        return f"{EACH.upper()}* is there for {', '.join(kinds)}; TRY_CAST(v AS MAP<VARCHAR, VARIANT>) has all fields"
    return ADVICE.get(call.name, "")


def _is_quantified(walker: TokenWalker, at: int) -> bool:
    """Return True if a comparison with ALL, ANY or SOME of a subquery, other than IN and NOT IN, begins at a token."""
    compared = walker.word(at), walker.word(at + 1)
    is_query = walker.word(at + 2) == "(" and walker.word(at + 3) in {"select", "with"}
    return is_query and compared[0] in _COMPARISONS and compared[1] in {"all", "any", "some"} and compared not in MEMBERSHIP


def refuse_unknown(walker: TokenWalker, known: Mapping[str, object]) -> None:
    """Refuse functions of other systems, with advice for a replacement.

    :param walker: the query's tokens
    :param known: the program's own functions, which may have any name
    :raises CallRefused: at the first such call
    """
    for call in walker.calls():
        advice = _advice(call)
        if advice and call.name not in known and not walker.follows_value(call.at):
            raise CallRefused(call.start, call.end, f"There is no function {call.name.upper()}: {advice}")
    for at in range(1, len(walker.tokens)):
        if _is_quantified(walker, at):
            message = f"{walker.word(at)} {walker.word(at + 1).upper()} (query) is not supported: {_EXTREMES}"
            raise CallRefused(walker.start(at), walker.end(at + 1), message)
        if walker.name(at) == "within" and walker.name(at + 1) == "distinct" and walker.word(at - 1) == ")":
            message = "WITHIN DISTINCT is not supported: aggregate over a subquery that gives each row once"
            raise CallRefused(walker.start(at), walker.end(at + 1), message)
