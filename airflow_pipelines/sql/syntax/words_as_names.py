"""Words of SQL as names: Spark reserves hardly any, while sqlglot takes about a hundred for keywords wherever they occur."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot.dialects.spark import Spark
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

_SPELLED_OUT: Final = frozenset(
    {
        TokenType.ALL, TokenType.ANTI, TokenType.ANY, TokenType.ASOF, TokenType.CASE, TokenType.COLLATE, TokenType.CUBE,
        TokenType.DESCRIBE, TokenType.DIV, TokenType.FULL, TokenType.IN, TokenType.INTERVAL, TokenType.LEFT, TokenType.LIMIT,
        TokenType.LOCK, TokenType.NATURAL, TokenType.OFFSET, TokenType.OVERLAPS, TokenType.RECURSIVE, TokenType.RIGHT,
        TokenType.ROLLUP, TokenType.SEMI, TokenType.WINDOW,
    }
)  # fmt: skip
"""Words that sqlglot takes for names in some places, but not in all places where Spark does."""
_HARD: Final = frozenset(
    word
    for word, kind in Spark.Tokenizer.KEYWORDS.items()
    if word.replace("_", "").isalpha()
    and (kind in _SPELLED_OUT or kind not in Parser.ID_VAR_TOKENS | {TokenType.NULL, TokenType.VAR})
)
"""The words that sqlglot does not take for names everywhere, in upper case."""
_QUOTED: Final = _HARD | {"IF"}
"""The hard words, and a word with which a statement begins for sqlglot though it is no keyword."""
_OPENS_QUERY: Final = frozenset({TokenType.FROM, TokenType.SELECT, TokenType.VALUES, TokenType.WITH})
_BEGINS_OPERAND: Final = frozenset(
    {TokenType.ALL, TokenType.CASE, TokenType.DISTINCT, TokenType.INTERVAL, TokenType.NOT, TokenType.WHEN}
)
"""Words that an operand may follow or begin with."""
_BEGINS_RELATION: Final = frozenset({TokenType.LATERAL, TokenType.VALUES})
_JOINS: Final = frozenset(
    {
        TokenType.ANTI, TokenType.ASOF, TokenType.CROSS, TokenType.FULL, TokenType.INNER, TokenType.LATERAL, TokenType.LEFT,
        TokenType.NATURAL, TokenType.RIGHT, TokenType.SEMI,
    }
)  # fmt: skip

_ENDS: Final = frozenset({TokenType.COMMA, TokenType.R_BRACE, TokenType.R_BRACKET, TokenType.R_PAREN, TokenType.SEMICOLON})
_SIGNS: Final = frozenset({TokenType.DASH, TokenType.L_BRACKET, TokenType.PLUS, TokenType.STAR})
"""Signs that may precede an operand as well as separate two."""
_OPERATORS: Final = frozenset(
    {
        TokenType.AMP, TokenType.ARROW, TokenType.CARET, TokenType.DCOLON, TokenType.DOT, TokenType.DPIPE,
        TokenType.EQ, TokenType.FARROW, TokenType.GT, TokenType.GTE, TokenType.LT, TokenType.LTE, TokenType.MOD, TokenType.NEQ,
        TokenType.NULLSAFE_EQ, TokenType.PIPE, TokenType.SLASH,
    }
)  # fmt: skip
"""Operators between two operands."""
_GO_ON: Final = frozenset(
    {
        TokenType.AND, TokenType.BETWEEN, TokenType.ELSE, TokenType.END, TokenType.ILIKE, TokenType.IN, TokenType.IS,
        TokenType.LIKE, TokenType.NOT, TokenType.OR, TokenType.RLIKE, TokenType.THEN, TokenType.WHEN,
    }
)  # fmt: skip
"""Words that follow an operand within the same expression."""
_NEGATED: Final = frozenset({TokenType.BETWEEN, TokenType.ILIKE, TokenType.IN, TokenType.LIKE, TokenType.RLIKE})
"""The words that NOT may precede."""
_CLAUSES: Final = frozenset(
    {
        TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.EXCEPT, TokenType.FROM, TokenType.GROUP_BY, TokenType.HAVING,
        TokenType.INTERSECT, TokenType.JOIN, TokenType.LIMIT, TokenType.ON, TokenType.ORDER_BY, TokenType.PARTITION_BY,
        TokenType.QUALIFY, TokenType.SORT_BY, TokenType.UNION, TokenType.USING, TokenType.WHERE,
    }
)  # fmt: skip
"""Words that begin the next part of a query."""
_CLAUSES_BY: Final = frozenset(
    {
        TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.PARTITION_BY,
        TokenType.SORT_BY,
    }
)  # fmt: skip
"""The clauses of two words, which cannot be a name."""
_CONNECTORS: Final = frozenset({TokenType.AND, TokenType.ELSE, TokenType.NOT, TokenType.OR, TokenType.THEN, TokenType.WHEN})
_ORDERS: Final = frozenset({TokenType.ASC, TokenType.DESC, TokenType.ROWS, TokenType.RANGE})
_BEHIND_OPERAND: Final = _ENDS | _GO_ON | _CLAUSES | _ORDERS | {TokenType.ALIAS}

_BEFORE_ITEM: Final = frozenset({TokenType.COMMA, TokenType.DISTINCT, TokenType.FROM, TokenType.JOIN, TokenType.SELECT})
"""The tokens before an item that may have an alias."""
_BEFORE_OPERAND: Final = (
    _OPERATORS - {TokenType.DCOLON, TokenType.DOT}
    | _BEFORE_ITEM
    | _SIGNS
    | frozenset(
        {
            TokenType.AND, TokenType.BETWEEN, TokenType.CASE, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.DIV,
            TokenType.ELSE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ILIKE, TokenType.L_PAREN, TokenType.LIKE,
            TokenType.NOT, TokenType.ON, TokenType.OR, TokenType.ORDER_BY, TokenType.PARTITION_BY, TokenType.QUALIFY,
            TokenType.RLIKE, TokenType.SORT_BY, TokenType.THEN, TokenType.TILDE, TokenType.WHEN, TokenType.WHERE,
        }
    )
)  # fmt: skip
_ENDS_OPERAND: Final = frozenset(
    {TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.R_BRACKET, TokenType.R_PAREN, TokenType.STRING, TokenType.VAR}
)


def mark_names(tokens: Sequence[Token]) -> None:
    """Make names of the words that sqlglot takes for keywords where only a name can be.

    Each word is examined with its neighbours. It stays a keyword where it could be one.

    :param tokens: the tokens of a text, which are changed
    """
    for at, token in enumerate(tokens):
        if is_hard(token) and _is_name(tokens, at):
            token.token_type = TokenType.VAR


def with_names(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens for the parser: names that are words of SQL count as quoted.

    :param tokens: tokens after :func:`mark_names`
    """
    return [
        _quote(token) if token.token_type is TokenType.VAR and token.text.upper() in _QUOTED and not is_called else token
        for token, is_called in zip(tokens, _are_called(tokens), strict=True)
    ]


def _are_called(tokens: Sequence[Token]) -> list[bool]:
    return [_kind(tokens, at + 1) is TokenType.L_PAREN for at in range(len(tokens))]


def _quote(token: Token) -> Token:
    return Token(TokenType.IDENTIFIER, token.text, token.line, token.col, token.start, token.end, token.comments)


def is_hard(token: Token) -> bool:
    """Return True if a token is a word that sqlglot does not take for a name everywhere.

    :param token: the token
    """
    return token.text.upper() in _HARD and token.token_type not in {TokenType.IDENTIFIER, TokenType.STRING, TokenType.VAR}


def hard_words() -> frozenset[str]:
    """Return the words that would be keywords without :func:`mark_names`, in upper case."""
    return _QUOTED


def may_be_name(token: Token, is_last: bool) -> bool:
    """Return True if a token at which the parser stopped may have been meant as a name.

    :param token: the token
    :param is_last: True if the statement ends behind it
    """
    return is_hard(token) and (not is_last or token.token_type in _BEGINS_OPERAND)


def _is_name(tokens: Sequence[Token], at: int) -> bool:
    before = _before(tokens, at)
    word, after = _kind(tokens, at), _kind(tokens, at + 1)
    if before is TokenType.DOT:
        return True
    if before in {TokenType.WITH, TokenType.RECURSIVE}:
        return after is TokenType.ALIAS
    if before in _BEFORE_OPERAND:
        return _is_operand(tokens, at, before)
    if before is TokenType.ALIAS and word is not TokenType.INTERVAL:
        opens_query = word in _OPENS_QUERY and _goes_on(tokens, at + 2)
        return after in _ENDS or (after in _CLAUSES and not opens_query)
    if before in _ENDS_OPERAND or before in Parser.TYPE_TOKENS:
        return _is_alias(tokens, at)
    return False


def _before(tokens: Sequence[Token], at: int) -> TokenType | None:
    """Return the kind of the token before another one, or None for an asterisk that stands for columns."""
    if at == 0 or (tokens[at - 1].token_type is TokenType.STAR and (at == 1 or tokens[at - 2].token_type not in _ENDS_OPERAND)):
        return None
    return tokens[at - 1].token_type


def _kind(tokens: Sequence[Token], at: int) -> TokenType:
    return tokens[at].token_type if at < len(tokens) else TokenType.SEMICOLON


def _goes_on(tokens: Sequence[Token], at: int) -> bool:
    """Return True if a token can only follow an operand, so that the one before it is an operand too."""
    kind = _kind(tokens, at)
    return (kind in _OPERATORS or kind in _BEHIND_OPERAND) and _kind(tokens, at + 1) is not TokenType.DOT


def _is_operand(tokens: Sequence[Token], at: int, before: TokenType) -> bool:
    """Return True if a word at the place of an operand is the operand."""
    word, after, next_but_one = (_kind(tokens, place) for place in (at, at + 1, at + 2))
    if word is TokenType.ALL and before is TokenType.GROUP_BY and after is not TokenType.COMMA:
        return False
    if word is TokenType.DISTINCT and before is TokenType.NOT:
        return False
    if before is TokenType.DISTINCT and TokenType.IS in {_kind(tokens, max(at - 2, 0)), _kind(tokens, max(at - 3, 0))}:
        # The FROM of IS [NOT] DISTINCT FROM.
        return False
    if before is TokenType.FROM and at > 1 and tokens[at - 2].token_type is TokenType.SELECT:
        # The columns before FROM are missing.
        return False
    if after in _OPERATORS or after in _ENDS or after in _CLAUSES_BY:
        return True
    has_from = TokenType.FROM in {after, next_but_one} or after in _SIGNS | {TokenType.ALIAS}
    if word is TokenType.FROM and before in {TokenType.DISTINCT, TokenType.SELECT} and not has_from:
        return False
    if _begins_operand(tokens, at, before):
        return _is_operand_all_the_same(tokens, at)
    if after is TokenType.NOT:
        return next_but_one in _NEGATED
    if after in _BEHIND_OPERAND or after in _SIGNS:
        return True
    is_named = after in {TokenType.VAR, TokenType.IDENTIFIER} or (at + 1 < len(tokens) and is_hard(tokens[at + 1]))
    return before in _BEFORE_ITEM and is_named and _is_alias(tokens, at + 1)


def _begins_operand(tokens: Sequence[Token], at: int, before: TokenType) -> bool:
    """Return True if a word may be the beginning of an operand, or may precede one."""
    word, after = _kind(tokens, at), _kind(tokens, at + 1)
    if word in {TokenType.ALL, TokenType.DISTINCT}:
        return before in {TokenType.L_PAREN, TokenType.SELECT}
    if word is TokenType.NOT:
        return before not in _OPERATORS and before not in _SIGNS and before not in _GO_ON - _CONNECTORS
    if word is TokenType.WHEN:
        return before is TokenType.CASE
    if word is TokenType.WHERE:
        return before is TokenType.L_PAREN
    if word is TokenType.VALUES and after in {TokenType.IDENTIFIER, TokenType.VAR}:
        return False
    if word in _BEGINS_RELATION:
        return before in {TokenType.COMMA, TokenType.FROM, TokenType.JOIN}
    if word in _OPENS_QUERY:
        return before is TokenType.L_PAREN and (after not in _SIGNS or word is TokenType.SELECT)
    return word in _BEGINS_OPERAND


def _is_operand_all_the_same(tokens: Sequence[Token], at: int) -> bool:
    """Return True if a word that may begin an operand is one, because the tokens behind it continue it."""
    word, after, next_but_one = (_kind(tokens, place) for place in (at, at + 1, at + 2))
    if after is TokenType.L_BRACKET:
        return True
    if after is TokenType.NOT:
        return next_but_one in _NEGATED
    if after is TokenType.IS:
        return next_but_one in {TokenType.NOT, TokenType.NULL}
    if word is TokenType.INTERVAL and after in _SIGNS:
        return _goes_on(tokens, at + 3)
    if (word, after) in {(TokenType.CASE, TokenType.WHEN), (TokenType.DISTINCT, TokenType.ON)}:
        return False
    return after in _BEHIND_OPERAND and not _goes_on(tokens, at + 2)


def _is_alias(tokens: Sequence[Token], at: int) -> bool:
    """Return True if a word behind an operand or a relation is its alias."""
    word, after = _kind(tokens, at), _kind(tokens, at + 1)
    if word in _JOINS and after is TokenType.JOIN:
        return False
    if word in {TokenType.FROM, TokenType.JOIN}:
        return after in _ENDS or (after is TokenType.FROM and not _goes_on(tokens, at + 2))
    return after in _ENDS or (after in _CLAUSES and not _goes_on(tokens, at + 2))
