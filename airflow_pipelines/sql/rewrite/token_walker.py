"""A walker over a text's tokens: calls with their arguments, brackets, operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from airflow_pipelines.program.names import fold
from airflow_pipelines.sql.syntax.dialect import tokenise
from airflow_pipelines.sql.syntax.tokens import LITERALS

_OPENING = frozenset({"(", "[", "{"})
_CLOSING = frozenset({")", "]", "}"})
ENDS_VALUE = frozenset(
    {TokenType.END, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.R_BRACKET, TokenType.R_PAREN, TokenType.VAR}
)
"""The tokens, besides texts, that end an expression, so that it cannot go on without an operator."""


@dataclass(frozen=True, slots=True)
class CallTokens:
    """A call ``name(arguments)``: tokens of the name and of its closing parenthesis; offsets of its arguments (ends exclusive)."""

    name: str
    at: int
    close: int
    start: int
    end: int
    arguments: tuple[tuple[int, int], ...]


def mentions(text: str, *words: str) -> bool:
    """Return True if one of some words is anywhere in a text. A pass that rewrites them need not parse a text without them.

    :param text: the text
    :param words: the words, in lower case
    """
    lowered = text.lower()
    return any(word in lowered for word in words)


class TokenWalker:
    """The tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: Sequence[Token] = tokenise(text)

    def word(self, at: int) -> str:
        """Return the text of a token in lower case, with single spaces.

        It is empty outside of the text, for literals and quoted names.
        """
        if not 0 <= at < len(self.tokens):
            return ""
        token = self.tokens[at]
        if token.token_type in LITERALS or token.token_type is TokenType.IDENTIFIER:
            return ""
        return " ".join(self.text[token.start : token.end + 1].lower().split())

    def name(self, at: int) -> str:
        """Return the name at a token; empty for anything else.

        The program's names are in lower case, names that rewrites add in upper case.
        """
        if not 0 <= at < len(self.tokens):
            return ""
        token = self.tokens[at]
        if token.token_type is TokenType.IDENTIFIER:
            return fold(token.text)
        word = self.text[token.start : token.end + 1] if self.word(at) else ""
        return word if word[:1].isalpha() or word[:1] == "_" else ""

    def follows_value(self, at: int) -> bool:
        """Return True if the token before ``at`` ends a value or a relation, so that no expression can begin at ``at``."""
        if at == 0:
            return False
        before = self.tokens[at - 1].token_type
        return before in {TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN} or self.word(at - 1) in {
            "as",
            "with",
            "recursive",
        }

    def piece(self, start: int, end: int) -> str:
        """Return the text between two offsets."""
        return self.text[start:end]

    def start(self, at: int) -> int:
        """Return the offset at which a token starts."""
        return self.tokens[at].start

    def end(self, at: int) -> int:
        """Return the offset behind a token."""
        return self.tokens[at].end + 1

    def closing(self, at: int) -> int | None:
        """Return the token that closes the bracket at token ``at``, or None if there is none."""
        depth = 0
        for place in range(at, len(self.tokens)):
            word = self.word(place)
            depth += (word in _OPENING) - (word in _CLOSING)
            if depth == 0:
                return place
        return None

    def opening(self, at: int) -> int | None:
        """Return the token that opens the bracket that token ``at`` closes, or None if there is none."""
        depth = 0
        for place in range(at, -1, -1):
            word = self.word(place)
            depth += (word in _CLOSING) - (word in _OPENING)
            if depth == 0:
                return place
        return None

    def calls(self) -> Iterator[CallTokens]:
        """Yield every name with a parenthesis behind it, in the order of the text."""
        for at in range(len(self.tokens) - 1):
            name = self.name(at)
            if not name or self.word(at + 1) != "(" or self.word(at - 1) == ".":
                continue
            close = self.closing(at + 1)
            if close is not None:
                yield CallTokens(name, at, close, self.start(at), self.end(close), tuple(self.arguments(at + 1, close)))

    def arguments(self, opening: int, closing: int) -> Iterator[tuple[int, int]]:
        """Yield the offsets of the pieces between two brackets, separated by commas (ends exclusive)."""
        if closing == opening + 1:
            return
        first, depth = opening + 1, 0
        for place in range(opening + 1, closing + 1):
            word = self.word(place)
            if place == closing or (word == "," and depth == 0):
                # There is nothing between two commas in a row, which Spark refuses.
                if place > first:
                    yield self.start(first), self.end(place - 1)
                first = place + 1
            depth += (word in _OPENING) - (word in _CLOSING)

    def operand(self, last: int) -> int | None:
        """Return the first token of the operand that ends at token ``last``.

        :param last: the last token of a name, a literal, a call or brackets
        :returns: None for other operands
        """
        at = last
        while at >= 0:
            if self.word(at) in _CLOSING:
                opened = self.opening(at)
                if opened is None:
                    return None
                at = opened
                brackets = self.word(opened) == "["
                called = bool(self.name(at - 1)) and self.word(at - 1) not in NOT_CALLED
                if brackets or called:
                    at -= 1
                    continue
                return at
            if self.tokens[at].token_type in LITERALS:
                return at
            if not self.name(at):
                return None
            if self.word(at - 1) != ".":
                return None if self.word(at) in _NOT_OPERANDS else at
            at -= 2
        return None


NOT_CALLED = frozenset(
    {
        "and", "as", "between", "by", "case", "distinct", "else", "except", "from", "having", "in", "intersect", "join", "like",
        "limit", "not", "on", "or", "over", "select", "then", "union", "using", "values", "when", "where", "with",
    }
)  # fmt: skip
"""The words that are no functions when a parenthesis follows them."""
_NOT_OPERANDS = frozenset({"end"})
"""The words that end an operand whose start is not searched for."""
