"""A cursor over the tokens of a statement: peek, accept, expect, and errors that show the token found instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from airflow_pipelines.program.messages import SYNTAX_ERROR, ProgramMessage
from airflow_pipelines.program.names import fold
from airflow_pipelines.program.spans import Span
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.syntax.ignored_clauses import Ignored
from airflow_pipelines.sql.syntax.tokens import LITERALS, FoldedText

_MAX_DIGITS = 18
_OPENING = frozenset({"(", "[", "{"})
_CLOSING = frozenset({")", "]", "}"})


class StatementError(Exception):
    """The error that a statement cannot be read further; ``message`` gives the position and the reason."""

    def __init__(self, message: ProgramMessage) -> None:
        super().__init__(message.message)
        self.message = message


@dataclass(frozen=True, slots=True)
class Name:
    """A name as written: its canonical text, True if it was quoted, and its position."""

    text: str
    quoted: bool
    span: Span


class Cursor:
    """A walk over the tokens of one statement. Words compare in lower case, since the text is folded."""

    def __init__(self, folded: FoldedText, tokens: Sequence[Token], types: Mapping[str, ColumnType] | None = None) -> None:
        """Start at the first token.

        :param types: the program's own types by name, for the places where a type is read
        """
        self.folded = folded
        self.source = folded.source
        self.tokens = tokens
        self.types: Mapping[str, ColumnType] = types or {}
        self.ignored = Ignored()
        self.index = 0

    @property
    def current(self) -> Token | None:
        """The next token, or None at the end of the statement."""
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    def peek(self, ahead: int = 0) -> str:
        """Return the written form of the token ``ahead`` positions ahead, folded; empty past the end.

        A token of several words, such as PRIMARY KEY, has one space between them.
        """
        at = self.index + ahead
        if at >= len(self.tokens):
            return ""
        token = self.tokens[at]
        written = self.folded.text[token.start : token.end + 1]
        return written if token.token_type in LITERALS or token.token_type == TokenType.IDENTIFIER else " ".join(written.split())

    def at(self, *words: str) -> bool:
        """Return True if the next tokens are exactly ``words``."""
        return all(self.peek(ahead) == word for ahead, word in enumerate(words))

    def take(self, *words: str) -> bool:
        """Step over ``words`` if they come next; return True if they did."""
        if not self.at(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Step over words.

        :param words: the words in their order
        :raises StatementError: at the first word that does not come next
        """
        for word in words:
            if not self.take(word):
                raise self.failure(f"Expected {word.upper()}")

    def advance(self) -> Token:
        """Step over one token and return it."""
        token = self.current
        if token is None:
            raise self.failure("The statement is not complete")
        self.index += 1
        return token

    def name(self, what: str) -> Name:
        """Take a name, quoted or not.

        :param what: a description of the name, for the message if there is none
        """
        token = self.current
        written = self.peek()
        if token is None or not (token.token_type == TokenType.IDENTIFIER or _is_word(written)):
            raise self.failure(f"Expected {what}")
        self.index += 1
        span = self.span(token.start, token.end + 1)
        if token.token_type == TokenType.IDENTIFIER:
            if not token.text:
                raise self.failure_at(span, f"Expected {what}; a name cannot be empty")
            return Name(token.text, True, span)
        return Name(fold(written), False, span)

    def string(self, what: str) -> Token:
        """Take a single-quoted string."""
        token = self.current
        if token is None or token.token_type != TokenType.STRING:
            raise self.failure(f"Expected {what} in single quotes")
        self.index += 1
        return token

    def integer(self, what: str) -> int:
        """Take a number without sign or point."""
        written = self.peek()
        if not (written.isascii() and written.isdigit()):
            raise self.failure(f"Expected {what}")
        if len(written) > _MAX_DIGITS:
            raise self.failure(f"Expected {what}, which is not that large")
        self.index += 1
        return int(written)

    def skip_parenthesis(self) -> None:
        """Step over a balanced ``( ... )``."""
        self.expect("(")
        depth = 1
        while depth:
            written = self.peek()
            depth += (written in _OPENING) - (written in _CLOSING)
            self.advance()

    def expression_end(self, stops: frozenset[str]) -> int:
        """Return the index at which an expression that starts here ends: at a comma, a closing bracket or one of ``stops``."""
        depth, at = 0, self.index
        while at < len(self.tokens):
            written = self.peek(at - self.index)
            if depth == 0 and at > self.index and (written in stops or self._is_not_null(at)):
                break
            if written in _CLOSING or (written == "," and depth == 0):
                if depth == 0:
                    break
                depth -= 1
            elif written in _OPENING:
                depth += 1
            at += 1
        return at

    def _is_not_null(self, at: int) -> bool:
        here = at - self.index
        return self.peek(here) == "not" and self.peek(here + 1) == "null" and self.peek(here - 1) != "is"

    def span(self, start: int, end: int) -> Span:
        """Return the span of ``text[start:end]``."""
        return self.source.span(start, end)

    def failure(self, wanted: str, error_type: str = SYNTAX_ERROR) -> StatementError:
        """Return an error at the next token that shows the expected and the found text."""
        token = self.current
        if token is None:
            last = self.tokens[-1]
            return self.failure_at(self.span(last.start, last.end + 1), f"{wanted}; found the end of the statement", error_type)
        span = self.span(token.start, token.end + 1)
        return self.failure_at(span, f"{wanted}; found {self.source.slice(span)!r}", error_type)

    def failure_at(self, span: Span, message: str, error_type: str = SYNTAX_ERROR) -> StatementError:
        """Return an error at a position of the text."""
        return StatementError(self.source.message(span, error_type, message))


def _is_word(written: str) -> bool:
    return bool(written) and " " not in written and (written[0].isalpha() or written[0] == "_" or not written[0].isascii())
