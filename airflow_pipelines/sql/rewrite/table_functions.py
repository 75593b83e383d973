"""The rewrite of generators in FROM: VARIANT_EXPLODE, which Spark supports in one place only, and implied LATERAL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_pipelines.sql.rewrite.clauses import alias, around, selects
from airflow_pipelines.sql.rewrite.token_walker import CallTokens, TokenWalker
from airflow_pipelines.sql.syntax.edits import Edit

_INLINE: Mapping[str, str] = {"variant_explode": "INLINE", "variant_explode_outer": "INLINE_OUTER"}
_PARTS = (
    "COALESCE(TRANSFORM(TRY_CAST({0} AS ARRAY<VARIANT>), (__e, __i) -> "
    "STRUCT(__i AS pos, CAST(NULL AS STRING) AS key, __e AS value)), "
    "TRANSFORM(MAP_ENTRIES(TRY_CAST({0} AS MAP<STRING, VARIANT>)), (__e, __i) -> "
    "STRUCT(__i AS pos, __e.key AS key, __e.value AS value)))"
)
"""The elements of a VARIANT that is an array, the fields of one that is an object, NULL for any other."""
_NAMES = "pos, key, value"
_GENERATORS = frozenset(
    {"explode", "explode_outer", "inline", "inline_outer", "json_tuple", "posexplode", "posexplode_outer", "stack", *_INLINE}
)
_CONSTANTS = frozenset({"false", "null", "true"})
_BEHIND_VIEW = frozenset(
    {
        "except", "group by", "having", "intersect", "lateral", "limit", "minus", "offset", "order by", "qualify", "union", "where",
        "window",
    }
)  # fmt: skip
"""The words behind a LATERAL VIEW that are not its name."""


def table_function_edits(walker: TokenWalker) -> Iterator[Edit]:
    """Yield the edits of generators that Spark refuses in their place.

    Examples are ``LATERAL VIEW variant_explode(v) e``, ``LATERAL variant_explode(v) AS e`` and ``FROM t, posexplode(t.a) AS e``.

    :param walker: the query
    """
    for call in walker.calls():
        if call.name not in _GENERATORS:
            continue
        in_from = _is_in_from(walker, call)
        implied = in_from and walker.word(call.at - 1) in {",", "join"} and _reads_columns(walker, call)
        inline = _INLINE.get(call.name) if len(call.arguments) == 1 else None
        if inline is not None:
            parts = _PARTS.format(walker.piece(*call.arguments[0]))
            yield Edit(call.start, call.end, f"{'LATERAL ' if implied else ''}{inline}({parts})")
            yield from _names(walker, call, in_from)
        elif implied:
            yield Edit(call.start, call.start, "LATERAL ")


def _is_view(walker: TokenWalker, call: CallTokens) -> bool:
    """Return True if a call is in LATERAL VIEW."""
    at = call.at - (2 if walker.word(call.at - 1) == "outer" else 1)
    return walker.word(at) == "view" and walker.word(at - 1) == "lateral"


def _names(walker: TokenWalker, call: CallTokens, in_from: bool) -> Iterator[Edit]:
    """Yield the edit that names the columns of a generator, if the query does not."""
    behind = call.close + 1
    if _is_view(walker, call):
        has_name = bool(walker.name(behind)) and walker.word(behind) not in {"as", *_BEHIND_VIEW}
        if walker.word(behind + has_name) != "as":
            place = walker.end(behind - 1 + has_name)
            yield Edit(place, place, f" AS {_NAMES}")
    elif in_from:
        named = alias(walker, behind)
        if named is None or walker.word(named + 1) != "(":
            place = walker.end(call.close if named is None else named)
            yield Edit(place, place, f" AS {call.name}({_NAMES})" if named is None else f"({_NAMES})")


def _is_in_from(walker: TokenWalker, call: CallTokens) -> bool:
    """Return True if a call is in FROM, in the place of a relation."""
    select = around(selects(walker), call.at)
    first, behind = select.clauses.get("from", (0, 0)) if select is not None else (0, 0)
    return first <= call.at < behind and walker.word(call.at - 1) in {",", "from", "join", "lateral"}


def _reads_columns(walker: TokenWalker, call: CallTokens) -> bool:
    """Return True if there is a name among the arguments of a call."""
    names = (at for at in range(call.at + 2, call.close) if walker.name(at) and walker.word(at + 1) != "(")
    return any(walker.word(at) not in _CONSTANTS for at in names)
