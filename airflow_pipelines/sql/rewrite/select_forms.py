"""Forms of SELECT that Spark writes in another way: DISTINCT ON, EXCLUDE, LIMIT a, b, FETCH FIRST, APPLY, quoted aliases."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.sql.rewrite import clauses
from airflow_pipelines.sql.rewrite.token_walker import Scan
from airflow_pipelines.sql.syntax.edits import Edit
from airflow_pipelines.sql.syntax.identifiers import quote

_BEHIND_RELATION = frozenset(
    {
        "cross", "except", "full", "group by", "having", "inner", "intersect", "join", "lateral", "left", "limit", "natural",
        "order by", "outer", "qualify", "right", "union", "where", "window",
    }
)  # fmt: skip
"""Words behind a relation that are not its name."""


def select_edits(scan: Scan) -> list[Edit]:
    """What makes the last of these forms one of Spark's; empty when there is none left."""
    for at in reversed(range(len(scan.tokens))):
        edits = _form(scan, at)
        if edits:
            return edits
    return []


def _form(scan: Scan, at: int) -> list[Edit]:
    match scan.name(at):
        case "exclude":
            return [_replaced(scan, at, at + 1, "EXCEPT")] if scan.word(at - 1) == "*" and scan.word(at + 1) == "(" else []
        case "limit":
            return _limit(scan, at)
        case "fetch":
            return _fetch(scan, at)
        case "distinct":
            return _distinct_on(scan, at) if scan.word(at - 1) == "select" and scan.word(at + 1) == "on" else []
        case "cross" if scan.word(at + 1) == "apply":
            return [_replaced(scan, at, at + 2, "CROSS JOIN LATERAL")]
        case "outer" if scan.word(at + 1) == "apply":
            return _outer_apply(scan, at)
    return list(_quoted_alias(scan, at))


def _replaced(scan: Scan, first: int, behind: int, text: str) -> Edit:
    """Tokens ``first`` to ``behind`` (exclusive) as ``text``."""
    return Edit(scan.start(first), scan.end(behind - 1), text)


def _limit(scan: Scan, at: int) -> list[Edit]:
    """``LIMIT offset, count``."""
    if scan.word(at + 2) != "," or at + 3 >= len(scan.tokens):
        return []
    # A column may be called limit, too.
    if any(scan.tokens[token].token_type is not TokenType.NUMBER for token in (at + 1, at + 3)):
        return []
    offset, count = (scan.piece(scan.start(token), scan.end(token)) for token in (at + 1, at + 3))
    return [_replaced(scan, at, at + 4, f"LIMIT {count} OFFSET {offset}")]


def _fetch(scan: Scan, at: int) -> list[Edit]:
    """``[OFFSET n ROWS] FETCH FIRST m ROWS ONLY``."""
    if scan.word(at + 1) not in {"first", "next"}:
        return []
    numbered = scan.word(at + 2) not in {"row", "rows"}
    count = scan.piece(scan.start(at + 2), scan.end(at + 2)) if numbered else "1"
    end = at + 3 + numbered
    if scan.word(end - 1) not in {"row", "rows"} or scan.word(end) != "only":
        return []
    before = at - 1 if scan.word(at - 1) in {"row", "rows"} else at
    if scan.word(before - 2) == "offset":
        offset = scan.piece(scan.start(before - 1), scan.end(before - 1))
        return [_replaced(scan, before - 2, end + 1, f"LIMIT {count} OFFSET {offset}")]
    return [_replaced(scan, at, end + 1, f"LIMIT {count}")]


def _distinct_on(scan: Scan, at: int) -> list[Edit]:
    """``SELECT DISTINCT ON (keys) ... ORDER BY order``: the first row of each key, which QUALIFY finds."""
    close = scan.closing(at + 2) if scan.word(at + 2) == "(" else None
    select = clauses.around(clauses.selects(scan), at)
    if close is None or select is None or close == at + 3:
        return []
    keys = scan.piece(scan.end(at + 2), scan.start(close))
    order = clauses.text(scan, select.clauses["order by"]) if "order by" in select.clauses else keys
    condition = f"ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {order}) = 1"
    removed = Edit(scan.start(at), scan.end(close), "")
    if "qualify" in select.clauses:
        first, behind = select.clauses["qualify"]
        return [
            removed,
            Edit(scan.start(first), scan.start(first), "("),
            Edit(scan.end(behind - 1), scan.end(behind - 1), f") AND {condition}"),
        ]
    later = [tokens[0] - 1 for name, tokens in select.clauses.items() if name in {"window", "order by", "limit", "offset"}]
    place = scan.end(min([*later, select.end]) - 1)
    return [removed, Edit(place, place, f" QUALIFY {condition}")]


def _outer_apply(scan: Scan, at: int) -> list[Edit]:
    """``OUTER APPLY relation [AS] name [(columns)]``."""
    end = at + 2 if scan.word(at + 2) == "(" else at + 3
    close = scan.closing(end) if scan.word(end) == "(" else None
    if close is None:
        return []
    behind = close
    if scan.word(close + 1) == "as":
        behind = close + 2
    elif scan.name(close + 1) and scan.word(close + 1) not in _BEHIND_RELATION:
        behind = close + 1
    if behind > close and scan.word(behind + 1) == "(":
        behind = scan.closing(behind + 1) or behind
    place = scan.end(behind)
    return [_replaced(scan, at, at + 2, "LEFT JOIN LATERAL"), Edit(place, place, " ON TRUE")]


def _quoted_alias(scan: Scan, at: int) -> Iterator[Edit]:
    """``expression AS 'name'`` in a SELECT list."""
    if at < 1 or scan.tokens[at].token_type is not TokenType.STRING:
        return
    named = scan.word(at - 1) == "as"
    behind = scan.word(at + 1) in {",", "from", ")"} or at + 1 == len(scan.tokens)
    if named and behind and not _in_cast(scan, at):
        yield _replaced(scan, at, at + 1, quote(scan.tokens[at].text))


def _in_cast(scan: Scan, at: int) -> bool:
    """Whether the string stands where the type of a cast is awaited."""
    return scan.word(at + 1) == ")" and any(call.close == at + 1 and "cast" in call.name.lower() for call in scan.calls())
