"""The parts that several kinds of statements share: names, expressions and queries, and the errors in them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from airflow_pipelines.program.messages import COMPILATION_ERROR, SYNTAX_ERROR
from airflow_pipelines.program.names import RESERVED_PREFIX, SYSTEM_VIEW, display
from airflow_pipelines.program.spans import Span
from airflow_pipelines.program.streams import is_hidden
from airflow_pipelines.sql.program.safety import unsafe_part
from airflow_pipelines.sql.program.statements.declared import Statements
from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.translate import translate
from airflow_pipelines.sql.syntax.cursor import Cursor, Name
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_tokens, tokenise
from airflow_pipelines.sql.syntax.edits import Edited
from airflow_pipelines.sql.syntax.hints import literal_hint

_COLUMN_STOPS = frozenset(
    {
        "collate",
        "comment",
        "default",
        "lateness",
        "watermark",
        "primary key",
        "foreign key",
        "references",
        "unique",
        "check",
        "constraint",
        "generated",
    }
)


@dataclass(frozen=True, slots=True)
class StatementParts:
    """A reader of the parts of one statement.

    :param cursor: the current position
    :param into: the collection of declarations, and of errors that leave the rest of the statement readable
    """

    cursor: Cursor
    into: Statements

    def head_span(self, words: int) -> Span:
        """Return the position of the statement's first words.

        :param words: the number of words
        """
        tokens = self.cursor.tokens
        return self.cursor.span(tokens[0].start, tokens[words - 1].end + 1)

    def note(self, span: Span, message: str) -> None:
        """Report an error after which the rest can still be read.

        :param span: the position of the error
        :param message: the error, and its remedy
        """
        self.into.messages.append(self.cursor.source.message(span, COMPILATION_ERROR, message))

    def relation_name(self) -> Name:
        """Read the name of a table or view that the statement declares.

        :raises StatementError: if it cannot be read
        """
        cursor = self.cursor
        name = cursor.name("a name")
        self.into.names.add(name.text)
        if cursor.at("."):
            raise cursor.failure("The name of a table or view has one part", COMPILATION_ERROR)
        if name.text.lower().startswith(RESERVED_PREFIX):
            self.note(
                name.span,
                f"The name {display(name.text)} is reserved: names that start with '{RESERVED_PREFIX}' belong to the system",
            )
        elif name.text == SYSTEM_VIEW:
            self.note(name.span, f"The name {name.text} is reserved: every program has a system view of that name")
        elif is_hidden(name.text):
            self.note(name.span, f"The name {display(name.text)} is reserved: it belongs to stream programs")
        return name

    def names(self, what: str) -> list[Name]:
        """Read names in parentheses.

        :param what: a description of the names, for the message if one is missing
        :raises StatementError: if they cannot be read
        """
        cursor = self.cursor
        cursor.expect("(")
        names = [cursor.name(what)]
        while cursor.take(","):
            names.append(cursor.name(what))
        cursor.expect(")")
        return names

    def expression(self, what: str) -> str:
        """Read an expression of constants, and return it as Spark is to read it.

        :param what: the keyword in front of it, for messages
        :raises StatementError: if it cannot be read, has a query, or does what no expression of a program may
        """
        cursor = self.cursor
        end = cursor.expression_end(_COLUMN_STOPS)
        tokens = cursor.tokens[cursor.index : end]
        if not tokens:
            raise cursor.failure(f"Expected an expression after {what}")
        edits = self.translate_part(tokens[0].start, tokens[-1].end + 1)
        tree = self.parse_part(edits, tokens[0].start)
        if tree.find(exp.Query) is not None:
            span = cursor.span(tokens[0].start, tokens[-1].end + 1)
            raise cursor.failure_at(span, f"{what} is one expression of constants and cannot have a query", COMPILATION_ERROR)
        if isinstance(tree, (exp.DDL, exp.Command)):
            raise cursor.failure(f"Expected an expression after {what}")
        unsafe = unsafe_part(tree, edits.text)
        if unsafe is not None:
            first, last = (tokens[0].start + place for place in edits.origin(unsafe.start, unsafe.end))
            raise cursor.failure_at(cursor.span(first, last), unsafe.message, COMPILATION_ERROR)
        cursor.index = end
        return edits.text

    def translate_part(self, start: int, end: int) -> Edited:
        """Return a query or expression of the program as Spark is to read it.

        :param start: its offset in the program
        :param end: its end in the program
        :raises StatementError: if it has a call that cannot be translated
        """
        cursor = self.cursor
        try:
            return translate(Edited(cursor.folded.text[start:end]), self.into.definitions)
        except CallRefused as refused:
            span = cursor.span(start + refused.start, start + refused.end)
            raise cursor.failure_at(span, refused.message, COMPILATION_ERROR) from refused

    def parse_part(self, edits: Edited, offset: int) -> exp.Expr:
        """Return the tree of a translated text.

        :param edits: the text with its edits
        :param offset: its offset in the program
        :raises StatementError: if it is no expression or query
        """
        cursor = self.cursor
        try:
            return parse_tokens(tokenise(edits.text), edits.text)
        except SyntaxFailure as failure:
            start, end = edits.origin(failure.start, failure.end)
            span = cursor.span(offset + start, offset + end)
            hint = literal_hint(cursor.source.text[offset : offset + start])
            raise cursor.failure_at(span, failure.message + hint, SYNTAX_ERROR) from failure
        except RecursionError as failure:
            raise cursor.failure_at(cursor.span(offset, offset + 1), "This expression nests too deep", SYNTAX_ERROR) from failure
