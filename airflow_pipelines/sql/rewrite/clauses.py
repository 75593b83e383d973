"""The clauses of each SELECT in a text, so that one can be changed and the rest stays as written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from airflow_pipelines.sql.rewrite.token_walker import TokenWalker

_SET_OPERATORS = frozenset({"union", "intersect", "except", "minus"})
_CLAUSES = frozenset(
    {
        "from", "where", "group by", "having", "qualify", "window", "order by", "sort by", "cluster by", "distribute by", "limit",
        "offset",
    }
)  # fmt: skip

_BEHIND_RELATION = frozenset(
    {
        "cross", "except", "full", "group by", "having", "inner", "intersect", "join", "lateral", "left", "limit", "natural", "on",
        "order by", "outer", "qualify", "right", "union", "using", "where", "window", "with",
    }
)  # fmt: skip
"""The words after a relation that are not its alias."""

Tokens = tuple[int, int]
"""A range of tokens: the index of the first one, and the index after the last."""


@dataclass(frozen=True, slots=True)
class SelectText:
    """One SELECT.

    :param clauses: the tokens of each clause without its keyword; those between SELECT and FROM are ``list``
    """

    start: int
    end: int
    clauses: Mapping[str, Tokens]


def selects(walker: TokenWalker) -> list[SelectText]:
    """Return every SELECT, in the order of the text. ``FROM t SELECT a`` is not recognised."""
    return [_select(walker, at) for at in range(len(walker.tokens)) if walker.word(at) == "select"]


def around(texts: list[SelectText], at: int) -> SelectText | None:
    """Return the innermost of the SELECTs that token ``at`` belongs to.

    :param texts: all SELECTs
    :param at: the token
    """
    return max((select for select in texts if select.start <= at < select.end), key=lambda select: select.start, default=None)


def text(walker: TokenWalker, tokens: Tokens) -> str:
    """Return the text of some tokens.

    :param walker: the text's tokens
    :param tokens: the range
    """
    return walker.piece(walker.start(tokens[0]), walker.end(tokens[1] - 1)) if tokens[0] < tokens[1] else ""


def alias(walker: TokenWalker, behind: int) -> int | None:
    """Return the token that names a relation which ends before a token, or None if it has no name.

    :param walker: the text's tokens
    :param behind: the token behind the relation
    """
    if walker.word(behind) == "as":
        return behind + 1 if walker.name(behind + 1) else None
    return behind if walker.name(behind) and walker.word(behind) not in _BEHIND_RELATION else None


def level(walker: TokenWalker, tokens: Tokens) -> Iterator[int]:
    """Yield the tokens at the top level of a range, without those inside of parentheses or closing ones.

    :param walker: the text's tokens
    :param tokens: the range
    """
    at = tokens[0]
    while at < tokens[1]:
        yield at
        close = walker.closing(at) if walker.word(at) == "(" else at
        at = tokens[1] if close is None else close + 1


def split(walker: TokenWalker, tokens: Tokens) -> list[Tokens]:
    """Return the pieces between the commas of a list.

    :param walker: the text's tokens
    :param tokens: the range of the list
    """
    pieces, first = [], tokens[0]
    for at in level(walker, tokens):
        if walker.word(at) == ",":
            pieces.append((first, at))
            first = at + 1
    return [*pieces, (first, tokens[1])] if tokens[0] < tokens[1] else []


def _select(walker: TokenWalker, start: int) -> SelectText:
    places = [("list", start)]
    end = len(walker.tokens)
    for at in level(walker, (start + 1, end)):
        word = walker.word(at)
        if walker.tokens[at].token_type is TokenType.VAR:
            # A name, even if it is a word of SQL.
            continue
        if word == ")" or (word in _SET_OPERATORS and walker.word(at - 1) != "*"):
            end = at
            break
        if word in _CLAUSES and _begins(walker, at, word):
            places.append((word, at))
    ends = [at for _, at in places[1:]] + [end]
    clauses: dict[str, Tokens] = {}
    for (name, at), last in zip(places, ends, strict=True):
        clauses.setdefault(name, (at + 1, last))
    return SelectText(start, end, clauses)


def _begins(walker: TokenWalker, at: int, word: str) -> bool:
    if walker.word(at - 1) == ".":
        return False
    if word == "from":
        return walker.word(at - 1) != "distinct"
    return word != "window" or (walker.word(at + 2) == "as" and walker.word(at + 3) == "(")
