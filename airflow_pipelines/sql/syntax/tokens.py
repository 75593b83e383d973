"""The tokens of a program's text: names are folded, comments removed, offsets unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from airflow_pipelines.program.messages import SYNTAX_ERROR, ProgramErrors
from airflow_pipelines.program.names import fold
from airflow_pipelines.program.source_text import SourceText
from airflow_pipelines.sql.syntax.dialect import tokenise
from airflow_pipelines.sql.syntax.variant_paths import variant_paths

_BYTE_ORDER_MARK = "\ufeff"
"""The byte order mark, with which some editors start a file; it is not part of the first word."""
LITERALS = frozenset(
    {
        TokenType.STRING,
        TokenType.NUMBER,
        TokenType.HEX_STRING,
        TokenType.BIT_STRING,
        TokenType.BYTE_STRING,
        TokenType.RAW_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.UNICODE_STRING,
        TokenType.HEREDOC_STRING,
    }
)
"""Tokens whose text is a value and is never folded."""

MOST_OPEN: Final = {TokenType.L_PAREN: 200, TokenType.CASE: 200, TokenType.L_BRACKET: 64}
"""The maximum number of open parentheses, CASEs and brackets at one place of a statement.

In nearly all statements the parser gives up earlier.
"""
_CLOSES: Final = {
    TokenType.R_PAREN: TokenType.L_PAREN,
    TokenType.END: TokenType.CASE,
    TokenType.R_BRACKET: TokenType.L_BRACKET,
}


@dataclass(frozen=True, slots=True)
class FoldedText:
    """A text and its folded form of the same length: unquoted names in lower case, quoted ones in back quotes, no comments."""

    source: SourceText
    text: str
    tokens: tuple[Token, ...]


def fold_text(text: str) -> FoldedText:
    """Tokenise and fold a program's (or ad-hoc request's) text.

    :raises ProgramErrors: if a quote or comment is not closed, the text nests too deep, or a quoted name cannot be written for
     Spark
    """
    source = SourceText(text)
    if text.startswith(_BYTE_ORDER_MARK):
        text = " " + text[1:]
    try:
        tokens = tokenise(text)
    except TokenError as failure:
        start, what = _find_unclosed(text)
        span = source.span(start, start + 1)
        raise ProgramErrors([source.message(span, SYNTAX_ERROR, f"{what} is not closed")]) from failure
    _check_depth(tokens, source)
    fields = {token for path in variant_paths(tokens) for token in path.steps}
    pieces: list[str] = []
    place = 0
    for at, token in enumerate(tokens):
        end = token.end + 1
        if token.start < place:
            # A number with a type suffix (1L) is one piece of text and three tokens.
            continue
        pieces.append(_blank(text[place : token.start]))
        written = text[token.start : end]
        # The names of fields behind a colon are those of the JSON, whose case matters.
        is_field = at in fields and token.token_type is not TokenType.IDENTIFIER
        pieces.append(written if is_field else _fold_token(token, written, source))
        place = end
    pieces.append(_blank(text[place:]))
    folded = "".join(pieces)
    return FoldedText(source, folded, tuple(tokenise(folded)))


def _check_depth(tokens: Sequence[Token], source: SourceText) -> None:
    """Refuse text that nests too deep before parsing it, because the time of parsing grows with the cube of the depth.

    :raises ProgramErrors: if more is open at one place than :data:`MOST_OPEN` allows
    """
    depths = dict.fromkeys(MOST_OPEN, 0)
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.SEMICOLON:
            depths = dict.fromkeys(MOST_OPEN, 0)
        elif kind in depths:
            depths[kind] += 1
            if depths[kind] > MOST_OPEN[kind]:
                span = source.span(token.start, token.end + 1)
                what = f"This nests too deep: more than {MOST_OPEN[kind]} of '{token.text}' are open here"
                raise ProgramErrors([source.message(span, SYNTAX_ERROR, what)])
        elif kind in _CLOSES:
            depths[_CLOSES[kind]] -= 1


def split_statements(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the tokens of each statement, without semicolons and empty statements."""
    statements: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            statements.append([])
        else:
            statements[-1].append(token)
    return [statement for statement in statements if statement]


def _blank(gap: str) -> str:
    return "".join(char if char.isspace() else " " for char in gap)


def _fold_token(token: Token, written: str, source: SourceText) -> str:
    if token.token_type in LITERALS:
        return written
    if token.token_type == TokenType.IDENTIFIER:
        return _back_quote(token, written, source)
    return fold(written)


def _back_quote(token: Token, written: str, source: SourceText) -> str:
    if written[0] == "`":
        return written
    name = written[1:-1].replace('""', '"').replace("`", "``")
    if len(name) + 2 > len(written):
        span = source.span(token.start, token.end + 1)
        raise ProgramErrors([source.message(span, SYNTAX_ERROR, "A name with a back quote in it must be written in back quotes")])
    # A doubled quote becomes a single one; the space keeps all offsets behind the name.
    return f"`{name}`".ljust(len(written))


def _find_unclosed(text: str) -> tuple[int, str]:
    """Return the offset and kind of the quote or comment that runs to the end of ``text``."""
    place = 0
    while place < len(text):
        if text.startswith("--", place):
            end = text.find("\n", place)
            place = len(text) if end < 0 else end + 1
            continue
        if text.startswith("/*", place):
            end = _closing_comment(text, place)
            if end < 0:
                return place, "This comment"
            place = end
            continue
        if text[place] in "'\"`":
            end = _closing_quote(text, place)
            if end < 0:
                return place, "This string" if text[place] == "'" else "This quoted name"
            place = end
        place += 1
    return max(0, len(text) - 1), "A quote or comment"


def _closing_comment(text: str, opening: int) -> int:
    """Return the offset behind a comment, or -1 if it is not closed; comments nest."""
    depth, place = 1, opening + 2
    while depth:
        inner, end = text.find("/*", place), text.find("*/", place)
        if end < 0:
            return -1
        nested = 0 <= inner < end
        depth += 1 if nested else -1
        place = (inner if nested else end) + 2
    return place


def _closing_quote(text: str, opening: int) -> int:
    quote, place = text[opening], opening + 1
    while place < len(text):
        if quote == "'" and text[place] == "\\":
            place += 2
            continue
        if text[place] == quote:
            if text[place + 1 : place + 2] != quote:
                return place
            place += 1
        place += 1
    return -1
