"""The positions of the parts of a query's tree in the text that it was parsed from, and reasons with such positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from airflow_pipelines.program.reasons import Reason
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.program.spans import Span
from airflow_pipelines.sql.plan.expressions import NotIncremental, sql
from airflow_pipelines.sql.syntax.dialect import tokenise

_OPENS: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSES: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_LEADS: Final = {
    exp.Limit: frozenset({TokenType.LIMIT, TokenType.FETCH}),
    exp.Offset: frozenset({TokenType.OFFSET}),
    exp.Order: frozenset({TokenType.ORDER_BY}),
    exp.Join: frozenset({TokenType.JOIN, TokenType.COMMA}),
    exp.Query: frozenset({TokenType.SELECT, TokenType.WITH, TokenType.VALUES}),
}
"""The words that a clause begins with, before its first name or constant."""
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Places:
    """The positions of the parts of a query in a program's text.

    :param query: the planner's text of the query
    :param source: the program's text
    :param origin: the function that maps a piece of ``query`` to its offsets in ``source`` (end exclusive); None if the planner's
     text cannot be mapped back, so that a reason has the text of a part but not its position
    :param otherwise: the position for parts that have none of their own
    """

    query: str
    source: SourceText
    origin: Callable[[int, int], tuple[int, int]] | None
    otherwise: Span | None = None

    @classmethod
    def within(cls, query: str) -> Places:
        """Return the places of a query that is the whole text of a program."""
        return cls(query, SourceText(query), lambda start, end: (start, end))

    def of_other_text(self, query: str) -> Places:
        """Return the places for a query that was derived from this one, and whose parts have no positions.

        :param query: the planner's text of the query
        """
        return replace(self, query=query, origin=None)

    def reason(self, why: str | NotIncremental, tree: exp.Expr | None = None) -> Reason:
        """Return a reason with its position.

        :param why: the reason, or an error that may know the part of the query that it is about
        :param tree: the part of the query's tree that the reason is about, if the error does not know it
        """
        if isinstance(why, NotIncremental) and why.tree is not None:
            tree = why.tree
        if tree is None:
            return Reason(str(why), self.otherwise)
        extent = _find_extent(tree, tokenise(self.query)) if self.origin is not None else None
        if extent is None or self.origin is None:
            return Reason(str(why), self.otherwise, _shorten(sql(tree)))
        span = self.source.span(*self.origin(*extent))
        return Reason(str(why), span, _shorten(self.source.slice(span)))


def _find_extent(tree: exp.Expr, tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Return the offsets (end exclusive) of the text that a tree was parsed from, or None if none of its names has one.

    The parser notes positions of names and constants only, so that the text around them is found by its brackets and words.
    """
    places = [(node.meta["start"], node.meta["end"]) for node in tree.walk() if "start" in node.meta]
    first = next((at for at, token in enumerate(tokens) if token.start == min((start for start, _ in places), default=-1)), None)
    last = next((at for at, token in enumerate(tokens) if token.end == max((end for _, end in places), default=-1)), None)
    if first is None or last is None:
        return None
    for kind, words in _LEADS.items():
        if isinstance(tree, kind):
            first = next((at for at in range(first, -1, -1) if tokens[at].token_type in words), first)
    # Include the qualifier: the column's source has been renamed by now, so that its name has no position.
    while first > 1 and tokens[first - 1].token_type is TokenType.DOT:
        first -= 2
    last = _closing(tree, tokens, first, last)
    is_closed = _depth(tokens[first : last + 1])
    while is_closed < 0 and first > 0:
        first -= 1
        is_closed += _depth(tokens[first : first + 1])
    return tokens[first].start, tokens[last].end + 1


def _closing(tree: exp.Expr, tokens: Sequence[Token], first: int, last: int) -> int:
    """Return the last of a tree's tokens, such that all brackets that are open after ``last``, or that open there, are closed."""
    at, is_open = last, _depth(tokens[first : last + 1])
    while at + 1 < len(tokens):
        following = tokens[at + 1].token_type
        begins = following in _OPENS or (isinstance(tree, exp.Window) and following is TokenType.OVER)
        if is_open <= 0 and not begins:
            break
        at += 1
        is_open += _depth(tokens[at : at + 1])
    return at


def _depth(tokens: Sequence[Token]) -> int:
    return sum((token.token_type in _OPENS) - (token.token_type in _CLOSES) for token in tokens)


def _shorten(text: str) -> str:
    """Return a text in one line, truncated if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 4]} ..."
