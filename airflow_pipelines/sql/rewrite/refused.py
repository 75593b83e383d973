"""Refuses calls that Spark cannot run, and functions of other systems, with what to write instead."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_pipelines.sql.rewrite.token_walker import TokenWalker


class CallRefused(Exception):
    """A function is called in a wrong way, or does not exist here. Offsets are those of the text, ``end`` exclusive."""

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
"""Functions that are not there, with what to write instead."""


def refuse_unknown(walker: TokenWalker, known: Mapping[str, object]) -> None:
    """Refuse functions of other systems by saying what to write instead.

    :param walker: the query's tokens
    :param known: the program's own functions, which may have any name
    :raises CallRefused: at the first such call
    """
    for call in walker.calls():
        if call.name in ADVICE and call.name not in known and not walker.follows_value(call.at):
            raise CallRefused(call.start, call.end, f"There is no function {call.name.upper()}: {ADVICE[call.name]}")
    for at in range(1, len(walker.tokens)):
        if walker.name(at) == "within" and walker.name(at + 1) == "distinct" and walker.word(at - 1) == ")":
            message = "WITHIN DISTINCT is not supported: aggregate over a subquery that gives each row once"
            raise CallRefused(walker.start(at), walker.end(at + 1), message)
