"""The rewrite of forms of SELECT that Spark lacks: DISTINCT ON, EXCLUDE, GROUP BY (), FETCH FIRST, APPLY, quoted names and more."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.rewrite import clauses
from airflow_pipelines.sql.rewrite.token_walker import ENDS_VALUE, CallTokens, TokenWalker
from airflow_pipelines.sql.syntax.aggregate_calls import is_aggregate_name
from airflow_pipelines.sql.syntax.edits import Edit

_QUALIFIED = "__qualified"


def select_edits(walker: TokenWalker) -> list[Edit]:
    """Return the edits that rewrite the last of these forms; empty if none is left.

    :param walker: the query
    """
    for at in reversed(range(len(walker.tokens))):
        edits = _form(walker, at)
        if edits:
            return edits
    return []


def _form(walker: TokenWalker, at: int) -> list[Edit]:
    name = walker.name(at)
    if walker.tokens[at].token_type is TokenType.VAR and name != "exclude":
        # A name, even if it is a word of SQL.
        return list(_quoted_alias(walker, at))
    match name:
        case "exclude":
            return [_replace(walker, at, at + 1, "EXCEPT")] if walker.word(at - 1) == "*" and walker.word(at + 1) == "(" else []
        case "group by" if walker.word(at + 1) == "(" and walker.word(at + 2) == ")":
            return _group_of_all(walker, at)
        case "limit":
            return _limit(walker, at)
        case "fetch":
            return _fetch(walker, at)
        case "distinct":
            return _distinct_on(walker, at) if walker.word(at - 1) == "select" and walker.word(at + 1) == "on" else []
        case "over" if walker.word(at + 1) == "(" and walker.word(at + 3) in {"order by", "range", "rows"}:
            return _refined_window(walker, at + 2)
        case "qualify":
            return _qualified_groups(walker, at)
        case "cross" if walker.word(at + 1) == "apply":
            return [_replace(walker, at, at + 2, "CROSS JOIN LATERAL")]
        case "outer" if walker.word(at + 1) == "apply":
            return _outer_apply(walker, at)
    return list(_quoted_alias(walker, at))


def _replace(walker: TokenWalker, first: int, behind: int, text: str) -> Edit:
    """Return the edit that replaces tokens ``first`` to ``behind`` (exclusive) by ``text``."""
    return Edit(walker.start(first), walker.end(behind - 1), text)


def _group_of_all(walker: TokenWalker, at: int) -> list[Edit]:
    """Rewrite ``GROUP BY ()``: one group of all rows, even if there are none; HAVING makes the same group."""
    if walker.word(at + 3) == ",":
        return []
    return [_replace(walker, at, at + 3, "" if walker.word(at + 3) == "having" else "HAVING TRUE")]


def _limit(walker: TokenWalker, at: int) -> list[Edit]:
    """Rewrite ``LIMIT offset, count``."""
    if walker.word(at + 2) != "," or at + 3 >= len(walker.tokens):
        return []
    # A column may be called limit, too.
    if any(walker.tokens[token].token_type is not TokenType.NUMBER for token in (at + 1, at + 3)):
        return []
    offset, count = (walker.piece(walker.start(token), walker.end(token)) for token in (at + 1, at + 3))
    return [_replace(walker, at, at + 4, f"LIMIT {count} OFFSET {offset}")]


def _fetch(walker: TokenWalker, at: int) -> list[Edit]:
    """Rewrite ``[OFFSET n ROWS] FETCH FIRST m ROWS ONLY``."""
    if walker.word(at + 1) not in {"first", "next"}:
        return []
    numbered = walker.word(at + 2) not in {"row", "rows"}
    count = walker.piece(walker.start(at + 2), walker.end(at + 2)) if numbered else "1"
    end = at + 3 + numbered
    if walker.word(end - 1) not in {"row", "rows"} or walker.word(end) != "only":
        return []
    before = at - 1 if walker.word(at - 1) in {"row", "rows"} else at
    if walker.word(before - 2) == "offset":
        offset = walker.piece(walker.start(before - 1), walker.end(before - 1))
        return [_replace(walker, before - 2, end + 1, f"LIMIT {count} OFFSET {offset}")]
    return [_replace(walker, at, end + 1, f"LIMIT {count}")]


def _distinct_on(walker: TokenWalker, at: int) -> list[Edit]:
    """Rewrite ``SELECT DISTINCT ON (keys) ... ORDER BY order``: the first row of each key, with QUALIFY."""
    close = walker.closing(at + 2) if walker.word(at + 2) == "(" else None
    select = clauses.around(clauses.selects(walker), at)
    if close is None or select is None or close == at + 3:
        return []
    keys = walker.piece(walker.end(at + 2), walker.start(close))
    order = clauses.text(walker, select.clauses["order by"]) if "order by" in select.clauses else keys
    condition = f"ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {order}) = 1"
    removed = Edit(walker.start(at), walker.end(close), "")
    if "qualify" in select.clauses:
        first, behind = select.clauses["qualify"]
        return [
            removed,
            Edit(walker.start(first), walker.start(first), "("),
            Edit(walker.end(behind - 1), walker.end(behind - 1), f") AND {condition}"),
        ]
    later = [tokens[0] - 1 for name, tokens in select.clauses.items() if name in {"window", "order by", "limit", "offset"}]
    place = walker.end(min([*later, select.end]) - 1)
    return [removed, Edit(place, place, f" QUALIFY {condition}")]


def _refined_window(walker: TokenWalker, at: int) -> list[Edit]:
    """Rewrite ``OVER (name ROWS ...)``: a window of the WINDOW clause that is refined where it is used."""
    select = clauses.around(clauses.selects(walker), at)
    if select is None or "window" not in select.clauses:
        return []
    for first, behind in clauses.split(walker, select.clauses["window"]):
        if walker.name(first) == walker.name(at) and walker.word(first + 2) == "(":
            return [_replace(walker, at, at + 1, walker.piece(walker.end(first + 2), walker.start(behind - 1)))]
    return []


def _qualified_groups(walker: TokenWalker, at: int) -> list[Edit]:
    """Rewrite ``GROUP BY ... QUALIFY`` with aggregates: the condition becomes a column.

    Spark allows these aggregates in the SELECT list only.
    """
    select = clauses.around(clauses.selects(walker), at)
    if select is None or select.clauses.get("qualify", (0, 0))[0] != at + 1 or "window" in select.clauses:
        return []
    first, behind = select.clauses["qualify"]
    if not _has_aggregates(walker, (first, behind)) or _has_aggregates(walker, select.clauses.get("order by", (0, 0))):
        return []
    condition, listed = clauses.text(walker, (first, behind)), walker.end(select.clauses["list"][1] - 1)
    return [
        Edit(walker.start(select.start), walker.start(select.start), f"SELECT * EXCEPT ({_QUALIFIED}) FROM ("),
        Edit(listed, listed, f", ({condition}) AS {_QUALIFIED}"),
        _replace(walker, at, behind, f") WHERE {_QUALIFIED}"),
    ]


def _has_aggregates(walker: TokenWalker, tokens: clauses.Tokens) -> bool:
    # LIKE ANY (...) is no call.
    calls = (call for call in walker.calls() if tokens[0] <= call.at < tokens[1] and call.name not in {"any", "some"})
    return any(is_aggregate_name(call.name) and _is_no_window(walker, call) for call in calls)


def _is_no_window(walker: TokenWalker, call: CallTokens) -> bool:
    """Return True if a call has no OVER behind it or behind its FILTER."""
    behind = call.close + 1
    if walker.word(behind) == "filter" and walker.word(behind + 1) == "(":
        behind = (walker.closing(behind + 1) or behind) + 1
    return walker.word(behind) != "over"


def _outer_apply(walker: TokenWalker, at: int) -> list[Edit]:
    """Rewrite ``OUTER APPLY relation [AS] name [(columns)]``."""
    end = at + 2 if walker.word(at + 2) == "(" else at + 3
    close = walker.closing(end) if walker.word(end) == "(" else None
    if close is None:
        return []
    named = clauses.alias(walker, close + 1)
    behind = close if named is None else named
    if behind > close and walker.word(behind + 1) == "(":
        behind = walker.closing(behind + 1) or behind
    place = walker.end(behind)
    return [_replace(walker, at, at + 2, "LEFT JOIN LATERAL"), Edit(place, place, " ON TRUE")]


def _quoted_alias(walker: TokenWalker, at: int) -> Iterator[Edit]:
    """Yield the edits of ``expression AS 'name'`` and ``expression 'name'`` in a SELECT list."""
    if at < 1 or walker.tokens[at].token_type is not TokenType.STRING:
        return
    behind = walker.word(at + 1) in {",", "from", ")"} or at + 1 == len(walker.tokens)
    if not behind:
        return
    if (walker.word(at - 1) == "as" and not _in_cast(walker, at)) or _ends_item(walker, at):
        yield _replace(walker, at, at + 1, quote(walker.tokens[at].text))


def _ends_item(walker: TokenWalker, at: int) -> bool:
    """Return True if a string is behind an expression of a SELECT list, and ends the item."""
    if walker.tokens[at - 1].token_type not in ENDS_VALUE:
        return False
    select = clauses.around(clauses.selects(walker), at)
    items = clauses.split(walker, select.clauses["list"]) if select is not None else []
    return any(first < at == behind - 1 for first, behind in items)


def _in_cast(walker: TokenWalker, at: int) -> bool:
    """Return True if the string is in the place of a cast's type."""
    return walker.word(at + 1) == ")" and any(call.close == at + 1 and "cast" in call.name.lower() for call in walker.calls())
