"""The SQL dialect: sqlglot's Spark with ANSI quoting, and parsing that keeps positions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp, transforms
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from airflow_pipelines.sql.syntax.balanced_chains import balance_chains
from airflow_pipelines.sql.syntax.window_tables import WindowTableParser
from airflow_pipelines.sql.syntax.words_as_names import mark_names, may_be_name, with_names

QUERY_STARTS = frozenset({"select", "with", "values", "from", "table", "map", "reduce", "("})
"""The words that a query may begin with. Any other word is reported there, because the parser would report a wrong expression."""

_ADVICE = ". A word of SQL that is to be a name has to be put in back quotes here"
_TOKEN_DUMP = re.compile(r" but got <Token .*", re.DOTALL)
_INCOMPLETE = re.compile(r"Required keyword: .* missing for <class .*", re.DOTALL)


_NO_KEYWORDS = frozenset(
    {
        "EXECUTE", "GLOB", "ISNULL", "NOTNULL", "PARTITIONED_BY", "PREPARE", "RETURNING", "STRAIGHT_JOIN", "XOR",
    }
)  # fmt: skip
"""Keywords of other dialects, and words behind which sqlglot would take the rest of a statement for one piece of text."""


class PipelineSpark(Spark):
    """The dialect of Spark 4 in ANSI mode with double-quoted identifiers."""

    class Tokenizer(Spark.Tokenizer):
        """A tokenizer in which double quotes hold names; a doubled quote inside a string stands for one, as in Spark 4."""

        QUOTES = ["'"]
        IDENTIFIERS = ["`", '"']
        STRING_ESCAPES = ["'", "\\"]
        KEYWORDS: ClassVar = {word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word not in _NO_KEYWORDS}

    class Generator(SparkGenerator):
        """A generator that prints QUALIFY, the aggregate ANY and the type TIME unchanged, because Spark 4 has them."""

        TYPE_MAPPING: ClassVar = {**SparkGenerator.TYPE_MAPPING, exp.DType.TIME: "TIME"}
        TRANSFORMS: ClassVar = {
            **SparkGenerator.TRANSFORMS,
            exp.Select: transforms.preprocess([transforms.eliminate_distinct_on, transforms.unnest_to_explode]),
        }

        def datatype_sql(self, expression: exp.DataType) -> str:
            """Print a type; sqlglot would leave out the precision of a TIME."""
            digits = expression.expressions if expression.is_type(exp.DType.TIME) else []
            written: str = super().datatype_sql(expression.copy() if digits else expression)
            return f"{written}({self.format_args(*digits)})" if digits else written


class SyntaxFailure(ParseError):
    """The error that a text is no query or expression. Offsets are those of the tokens given; ``end`` is exclusive."""

    def __init__(self, start: int, end: int, message: str) -> None:
        super().__init__(message)
        self.start = start
        self.end = end
        self.message = message


def _is_aggregate(build: Any) -> bool:
    arguments = [exp.column(name) for name in "abc"]
    for count in (1, 2, 3):
        try:
            return isinstance(build(arguments[:count]), exp.AggFunc)
        except (TypeError, IndexError, ParseError):
            # No function of this number of arguments, or one that needs the dialect, which no aggregate does.
            continue
    return False


_UNIT_FIRST = frozenset({"date_add", "date_diff", "dateadd", "datediff", "timestampadd", "timestampdiff"})
"""Functions whose first argument is a unit if there are three arguments."""


class _Parser(WindowTableParser):
    """A parser that keeps functions as they are written, and reports the token at which it stopped.

    sqlglot gives functions that several dialects share a meaning of its own, and prints them in another form. This parser
    recognises only aggregates; it leaves every other function to Spark.
    """

    FUNCTIONS: ClassVar = {
        # To sqlglot CORR is a binary operator, which cannot have DISTINCT, and exact percentiles are approximate ones.
        name: build
        for name, build in SparkParser.FUNCTIONS.items()
        if _is_aggregate(build) and name not in {"CORR", "PERCENTILE_CONT", "PERCENTILE_DISC"}
    }
    FUNCTION_PARSERS: ClassVar = {
        name: parse
        for name, parse in SparkParser.FUNCTION_PARSERS.items()
        if name not in {"CHAR", "CHR", "CONVERT", "DECODE", "INITCAP", "NORMALIZE", "TRY_CONVERT"}
    }

    def _parse_types(self, *args: Any, **kwargs: Any) -> Any:
        parsed = super()._parse_types(*args, **kwargs)
        if isinstance(parsed, exp.DataType) and isinstance(collation := parsed.args.get("collate"), exp.Column):
            # sqlglot takes the name of a collation for a column, which no relation has.
            parsed.set("collate", exp.Var(this=collation.name))
        return parsed

    def _parse_function(self, *args: Any, **kwargs: Any) -> Any:
        parsed = super()._parse_function(*args, **kwargs)
        if isinstance(parsed, exp.Anonymous) and parsed.name.lower() in _UNIT_FIRST and len(parsed.expressions) == 3:
            unit = parsed.expressions[0]
            if isinstance(unit, exp.Column) and not unit.table:
                unit.replace(exp.Var(this=unit.name))
        return parsed

    def operand_size(self, tokens: list[Token], sql: str) -> int:
        """Return the number of tokens of the operand of a comparison at the start of some tokens."""
        self.reset()
        self.sql = sql
        self._chunks = [tokens]
        self._advance_chunk()
        self._parse_bitwise()
        return self._index

    def raise_error(self, message: str, token: Any = None) -> None:
        where = token or self._curr or self._prev
        at_end = not token and not self._curr
        start, end = (where.start, where.end + 1) if where else (0, 0)
        actual = "the end of the statement" if at_end else repr(self.sql[start:end])
        wanted = _INCOMPLETE.sub("Incomplete expression", _TOKEN_DUMP.sub("", message)).rstrip(". ")
        may_be_meant = "after CASE" in wanted or (where and may_be_name(where, at_end))
        advice = _ADVICE if may_be_meant else ""
        raise SyntaxFailure(start, end, f"{wanted}; found {actual}{advice}")

    def validate_expression(self, expression: Any, args: Any = None) -> Any:
        # Spark checks the number of arguments: it knows all functions and names them in its errors.
        if isinstance(expression, exp.Func) and not isinstance(expression, (exp.Cast, exp.Case, exp.Connector, exp.Binary)):
            return expression
        return super().validate_expression(expression, args)


class _OperandParser(_Parser):
    """A parser that notes the start and end of each operand of a multiplication or division in its ``meta``."""

    def _parse_factor_operand(self) -> Any:
        first = self._index
        operand = super()._parse_factor_operand()
        if isinstance(operand, exp.Expr) and self._index > first:
            operand.meta[OPERAND] = (self._tokens[first].start, self._tokens[self._index - 1].end + 1)
        return operand


OPERAND = "operand"
"""The key in ``meta`` of :func:`parse_with_operands`."""
DIALECT = PipelineSpark()


def check_parser(make_parser: Callable[[], object]) -> None:
    """Make a parser to check that sqlglot's parsers can be extended, which its compiled build prevents if it is installed too.

    :param make_parser: the function that makes a parser
    :raises ImportError: if it cannot be made
    """
    try:
        make_parser()
    except TypeError as error:
        raise ImportError(
            f"sqlglot's compiled build is installed, whose parsers no other package can extend ({error}); remove it: "
            "pip uninstall sqlglotc"
        ) from error


check_parser(lambda: _Parser(dialect=DIALECT))


_CALLED = frozenset({TokenType.SESSION, TokenType.WINDOW})
"""Words that are names of functions before a parenthesis."""


def tokenise(text: str) -> list[Token]:
    """Return the tokens of ``text`` with their offsets (``end`` included).

    :raises sqlglot.errors.TokenError: if a quote or comment is not closed
    """
    tokens = DIALECT.tokenize(text)
    for token, following in pairwise(tokens):
        # sqlglot would end GROUP BY at the word, as if the WINDOW clause began there.
        if token.token_type in _CALLED and following.token_type is TokenType.L_PAREN:
            token.token_type = TokenType.VAR
    mark_names(tokens)
    return tokens


def parse_tokens(tokens: Sequence[Token], text: str) -> exp.Expr:
    """Return the tree of one query or expression, whose names carry their offsets in ``meta``.

    :param tokens: a piece of the result of :func:`tokenise` for ``text``, without semicolons
    :param text: the whole text that was tokenised
    :raises SyntaxFailure: if the tokens do not make one statement
    """
    return _parse_with(_Parser(dialect=DIALECT), tokens, text)


def parse_with_operands(text: str) -> exp.Expr:
    """Return the tree of :func:`parse_tokens` for a query, with the positions of operands of multiplications and divisions.

    :param text: the query
    :returns: each operand has ``meta[OPERAND]``, its offsets (end exclusive); a chain has its offsets in its parts
    :raises SyntaxFailure: if the text is not one query
    """
    return _parse_with(_OperandParser(dialect=DIALECT), tokenise(text), text)


def _parse_with(parser: _Parser, tokens: Sequence[Token], text: str) -> exp.Expr:
    trees = parser.parse(with_names(tokens), text)
    tree = trees[0] if trees else None
    if not isinstance(tree, exp.Expr):
        raise SyntaxFailure(0, 0, "Nothing to parse")
    return balance_chains(tree)


def operand_size(tokens: Sequence[Token], text: str) -> int:
    """Return the number of tokens of the operand of a comparison at their start: ``a + 1 AND b`` begins with one of three.

    :param tokens: a piece of the result of :func:`tokenise` for ``text``
    :param text: the whole text that was tokenised
    :raises SyntaxFailure: if no operand begins there
    """
    return _Parser(dialect=DIALECT).operand_size(with_names(tokens), text)


def parse_query(sql: str) -> exp.Query:
    """Return the tree of one query given as text, e.g. of :attr:`View.query`.

    :raises SyntaxFailure: if the text is not one query
    """
    tree = parse_tokens(tokenise(sql), sql)
    if not isinstance(tree, exp.Query):
        raise SyntaxFailure(0, len(sql), "Expected a query")
    return tree
