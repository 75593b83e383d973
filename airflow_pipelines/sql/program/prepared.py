"""``PREPARE name (types) AS statement`` and ``EXECUTE name (values)``, both within one ad-hoc request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from airflow_pipelines.program.messages import COMPILATION_ERROR
from airflow_pipelines.sql.syntax.column_types import parse_type
from airflow_pipelines.sql.syntax.cursor import Cursor, Name
from airflow_pipelines.sql.syntax.edits import Edit, Edited

_ANY = frozenset[str]()


@dataclass(frozen=True, slots=True)
class PreparedStatement:
    """A statement with parameters ``$1``, ``$2`` and so on.

    :param types: the parameters' types in Spark SQL; empty if none are declared
    :param text: the statement
    :param parameters: for each use of a parameter its number and its start and end in the text
    """

    types: tuple[str, ...]
    text: str
    parameters: tuple[tuple[int, int, int], ...]

    @property
    def count(self) -> int:
        """The number of values that it takes."""
        return len(self.types) or max((number for number, _, _ in self.parameters), default=0)

    def with_values(self, values: Sequence[str]) -> str:
        """Return the statement with values in place of its parameters.

        :param values: an expression for each parameter
        """
        cast = [f"cast({value} as {kind})" for value, kind in zip(values, self.types, strict=True)] if self.types else values
        return Edited(self.text).edit(Edit(start, end, f"({cast[number - 1]})") for number, start, end in self.parameters).text


@dataclass(slots=True)
class PreparedStatements:
    """The statements that a request has prepared, by name."""

    _known: dict[str, PreparedStatement] = field(default_factory=dict)

    def prepare(self, cursor: Cursor) -> None:
        """Read a PREPARE.

        :param cursor: the cursor at the beginning of the statement
        :raises StatementError: if the statement is invalid
        """
        cursor.expect("prepare")
        name = cursor.name("the statement's name")
        if name.text in self._known:
            raise cursor.failure_at(name.span, f"A statement {name.text} is prepared already", COMPILATION_ERROR)
        types = self._types(cursor) if cursor.take("(") else ()
        cursor.expect("as")
        if cursor.current is None:
            raise cursor.failure("Expected SELECT, INSERT or DELETE")
        tokens = cursor.tokens[cursor.index :]
        start = tokens[0].start
        parameters = tuple(self._parameters(tokens, start))
        wrong = next((number for number, _, _ in parameters if number < 1 or (types and number > len(types))), None)
        if wrong is not None:
            raise cursor.failure_at(name.span, f"Statement {name.text} has no parameter ${wrong}", COMPILATION_ERROR)
        self._known[name.text] = PreparedStatement(types, cursor.folded.text[start : tokens[-1].end + 1], parameters)

    def read_execute(self, cursor: Cursor) -> str:
        """Read an EXECUTE.

        :param cursor: the cursor at the beginning of the statement
        :returns: the prepared statement with the given values
        :raises StatementError: if the statement is invalid
        """
        cursor.expect("execute")
        name = cursor.name("the name of a prepared statement")
        values = self._values(cursor) if cursor.take("(") else []
        if cursor.current is not None:
            raise cursor.failure("Expected the end of the statement")
        return self._find_statement(cursor, name, len(values)).with_values(values)

    def _find_statement(self, cursor: Cursor, name: Name, count: int) -> PreparedStatement:
        statement = self._known.get(name.text)
        if statement is None:
            message = f"No statement {name.text} is prepared before in this request: PREPARE {name.text} AS ..."
            raise cursor.failure_at(name.span, message, COMPILATION_ERROR)
        if statement.count != count:
            message = f"Statement {name.text} takes {statement.count} values, and EXECUTE gives {count}"
            raise cursor.failure_at(name.span, message, COMPILATION_ERROR)
        return statement

    def _types(self, cursor: Cursor) -> tuple[str, ...]:
        types = []
        while True:
            first = cursor.index
            parse_type(cursor)
            types.append(_text(cursor, first, cursor.index))
            if not cursor.take(","):
                break
        cursor.expect(")")
        return tuple(types)

    def _values(self, cursor: Cursor) -> list[str]:
        values: list[str] = []
        while not cursor.at(")"):
            first, last = cursor.index, cursor.expression_end(_ANY)
            if last == first:
                raise cursor.failure("Expected a value")
            values.append(_text(cursor, first, last))
            cursor.index = last
            if not cursor.take(","):
                break
        cursor.expect(")")
        return values

    def _parameters(self, tokens: Sequence[Token], start: int) -> list[tuple[int, int, int]]:
        return [
            (int(number.text), sign.start - start, number.end + 1 - start)
            for sign, number in pairwise(tokens)
            if sign.token_type is TokenType.PARAMETER and re.fullmatch("[0-9]{1,3}", number.text) and number.start == sign.end + 1
        ]


def _text(cursor: Cursor, first: int, last: int) -> str:
    return cursor.folded.text[cursor.tokens[first].start : cursor.tokens[last - 1].end + 1]
