"""CREATE TYPE and CREATE FUNCTION: the definitions of a program, read before its tables and views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from airflow_pipelines.program.definitions import Definitions
from airflow_pipelines.program.functions import FunctionDefinition, FunctionKind, Parameter
from airflow_pipelines.program.messages import COMPILATION_ERROR, SYNTAX_ERROR, ProgramMessage
from airflow_pipelines.program.names import RESERVED_PREFIX, display, fold
from airflow_pipelines.program.source_text import twice
from airflow_pipelines.program.spans import Span
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.sql.program.function_bodies import JSON_PREFIX, FunctionBody
from airflow_pipelines.sql.program.provided_functions import with_provided
from airflow_pipelines.sql.program.safety import unsafe_part
from airflow_pipelines.sql.rewrite.refused import CallRefused
from airflow_pipelines.sql.rewrite.token_walker import NOT_CALLED, TokenWalker
from airflow_pipelines.sql.rewrite.translate import inline_functions
from airflow_pipelines.sql.syntax.aggregate_calls import is_aggregate
from airflow_pipelines.sql.syntax.column_types import RESERVED_TYPES, parse_type
from airflow_pipelines.sql.syntax.cursor import Cursor, Name, StatementError
from airflow_pipelines.sql.syntax.dialect import SyntaxFailure, parse_tokens, tokenise
from airflow_pipelines.sql.syntax.edits import Edit, Edited
from airflow_pipelines.sql.syntax.storage_clauses import take_comment, take_head
from airflow_pipelines.sql.syntax.tokens import FoldedText

_SYNTAX = NOT_CALLED | {"array", "cast", "exists", "extract", "if", "interval", "map", "row", "safe_cast", "struct", "try_cast"}
"""Words that SQL itself uses before a parenthesis."""


@dataclass(slots=True)
class DefinitionStatements:
    """The definitions read so far, and all errors found."""

    types: dict[str, ColumnType] = field(default_factory=dict)
    functions: dict[str, FunctionDefinition] = field(default_factory=dict)
    spans: dict[tuple[str, str], Span] = field(default_factory=dict)
    messages: list[ProgramMessage] = field(default_factory=list)
    warnings: list[ProgramMessage] = field(default_factory=list)
    bodies: dict[str, FunctionBody] = field(default_factory=dict)
    """The expressions of SQL functions, with their positions in the program's text."""

    @property
    def definitions(self) -> Definitions:
        """The types and functions read so far."""
        return Definitions(self.types, self.functions)


def is_definition(tokens: Sequence[Token], folded: FoldedText) -> bool:
    """Return True if a statement defines a type or a function.

    :param tokens: the statement's tokens
    :param folded: the program's text
    """
    cursor = Cursor(folded, tokens)
    _take_create(cursor)
    return cursor.at("type") or cursor.at("function")


def _take_create(cursor: Cursor) -> None:
    if cursor.take("create"):
        take_head(cursor, "or", "replace")
        cursor.take("temporary")


def read_definitions(folded: FoldedText, statements: Sequence[Sequence[Token]], udf_python: str) -> DefinitionStatements:
    """Read the statements that define types and functions; each may use those written before it.

    :param folded: the program's text
    :param statements: the tokens of each statement
    :param udf_python: the text of the program's Python module
    """
    defined = DefinitionStatements()
    for tokens in statements:
        cursor = Cursor(folded, tokens, defined.types)
        try:
            _take_create(cursor)
            if cursor.take("type"):
                _read_type(cursor, defined)
            else:
                cursor.expect("function")
                take_head(cursor, "if", "not", "exists")
                _read_function(cursor, defined, udf_python)
            defined.warnings += cursor.ignored.warnings(cursor.source)
        except StatementError as failure:
            defined.messages.append(failure.message)
    return defined


def _declare(cursor: Cursor, defined: DefinitionStatements, what: str, name: Name, key: str) -> None:
    first = defined.spans.get((what, key))
    if first is not None:
        message = f"{what} {display(key)} is declared twice: {twice(first, name.span)}"
        if what == "Function":
            message += "; a name stands for one function, whatever its arguments"
        raise cursor.failure_at(name.span, message, COMPILATION_ERROR)
    defined.spans[(what, key)] = name.span
    if key.lower().startswith(RESERVED_PREFIX):
        message = f"The name {display(key)} is reserved: names that start with '{RESERVED_PREFIX}' belong to the system"
        raise cursor.failure_at(name.span, message, COMPILATION_ERROR)


def _read_type(cursor: Cursor, defined: DefinitionStatements) -> None:
    name = cursor.name("the type's name")
    if not name.quoted and name.text in RESERVED_TYPES:
        raise cursor.failure_at(name.span, f"{name.text.upper()} is a type of SQL and cannot be declared again", COMPILATION_ERROR)
    _declare(cursor, defined, "Type", name, name.text)
    cursor.expect("as")
    kind = _read_fields(cursor) if cursor.at("(") else parse_type(cursor)
    _expect_end(cursor)
    defined.types[name.text] = kind


def _read_fields(cursor: Cursor) -> ColumnType:
    cursor.expect("(")
    fields: dict[str, ColumnType] = {}
    while True:
        name = cursor.name("a field's name")
        if name.text in fields:
            raise cursor.failure_at(name.span, f"Field {display(name.text)} is declared twice", COMPILATION_ERROR)
        fields[name.text] = _nullable_type(cursor)
        if not cursor.take(","):
            break
    cursor.expect(")")
    return ColumnType("STRUCT", fields=tuple(fields.items()))


def _nullable_type(cursor: Cursor) -> ColumnType:
    kind = parse_type(cursor)
    required = cursor.take("not", "null")
    if not required:
        cursor.take("null")
    return kind.with_nullable(not required)


def _expect_end(cursor: Cursor) -> None:
    if cursor.current is not None:
        raise cursor.failure("Expected the end of the statement")


def _read_function(cursor: Cursor, defined: DefinitionStatements, udf_python: str) -> None:
    name = cursor.name("the function's name")
    # Unlike relations and columns, functions may be called in any case, quoted or not.
    key = fold(name.text)
    if key in _SYNTAX:
        raise cursor.failure_at(name.span, f"{key.upper()} is a word of SQL and cannot be a function's name", COMPILATION_ERROR)
    _declare(cursor, defined, "Function", name, key)
    parameters = _read_parameters(cursor)
    cursor.expect("returns")
    returns = _nullable_type(cursor)
    while take_comment(cursor) or cursor.take("language", "sql") or cursor.take("deterministic"):
        pass
    if cursor.take("as") or cursor.take("return"):
        body = _read_body(cursor, defined, key, parameters)
        function = FunctionDefinition(key, FunctionKind.SQL, parameters, returns, name.span, body)
    elif key.startswith(JSON_PREFIX):
        _expect_end(cursor)
        if len(parameters) != 1 or not parameters[0].type.is_text or parameters[0].type.is_padded:
            message = f"{display(key)} reads JSON text: it has one parameter, which is a VARCHAR"
            raise cursor.failure_at(name.span, message, COMPILATION_ERROR)
        function = FunctionDefinition(key, FunctionKind.JSON, parameters, returns, name.span)
    else:
        _expect_end(cursor)
        function = FunctionDefinition(key, FunctionKind.PYTHON, parameters, returns, name.span, module=udf_python)
    defined.functions[key] = function


def _read_parameters(cursor: Cursor) -> tuple[Parameter, ...]:
    cursor.expect("(")
    parameters: list[Parameter] = []
    while not cursor.at(")"):
        name = cursor.name("a parameter's name")
        if any(name.text == other.name for other in parameters):
            raise cursor.failure_at(name.span, f"Parameter {display(name.text)} is declared twice", COMPILATION_ERROR)
        parameters.append(Parameter(name.text, _nullable_type(cursor)))
        take_comment(cursor)
        if not cursor.take(","):
            break
    cursor.expect(")")
    return tuple(parameters)


def _read_body(cursor: Cursor, defined: DefinitionStatements, function: str, parameters: Sequence[Parameter]) -> str:
    """Read the expression; give its variables unique names and inline its calls of earlier functions of the program."""
    tokens = cursor.tokens[cursor.index :]
    if not tokens:
        raise cursor.failure("Expected an expression after AS")
    start, end = tokens[0].start, tokens[-1].end + 1
    text = cursor.folded.text[start:end]
    try:
        tree = parse_tokens(tokens, cursor.folded.text)
    except SyntaxFailure as failure:
        raise cursor.failure_at(cursor.span(failure.start, failure.end), failure.message, SYNTAX_ERROR) from failure
    except RecursionError as failure:
        raise cursor.failure_at(cursor.span(start, start + 1), "This expression nests too deep", SYNTAX_ERROR) from failure
    body = cursor.span(start, end)
    if isinstance(tree, (exp.DDL, exp.Command)) or tree.find(exp.Query, exp.Subquery) is not None:
        message = "A function's body is one expression and cannot read relations: pass what it needs as arguments"
        raise cursor.failure_at(body, message, COMPILATION_ERROR)
    unsafe = unsafe_part(parse_tokens(tokenise(text), text), text)
    if unsafe is not None:
        raise cursor.failure_at(cursor.span(start + unsafe.start, start + unsafe.end), unsafe.message, COMPILATION_ERROR)
    if any(is_aggregate(node) or isinstance(node, exp.Window) for node in tree.walk()):
        message = "A function's body cannot have aggregates or windows: pass their values as arguments"
        raise cursor.failure_at(body, message, COMPILATION_ERROR)
    _refuse_undefined_calls(cursor, TokenWalker(text), start, defined, function)
    edited = Edited(text).edit(_rename_variables(cursor, text, start, function, parameters))
    try:
        defined.bodies[function] = FunctionBody(start, inline_functions(edited, with_provided(defined.definitions, text)))
    except CallRefused as refused:
        span = cursor.span(start + refused.start, start + refused.end)
        raise cursor.failure_at(span, refused.message, COMPILATION_ERROR) from refused
    return defined.bodies[function].edits.text


def _refuse_undefined_calls(cursor: Cursor, scan: TokenWalker, offset: int, defined: DefinitionStatements, function: str) -> None:
    """Refuse calls of the function itself, and of earlier functions whose definitions have errors.

    A function sees only those before it, so that no other recursion is possible.
    """
    for call in scan.calls():
        if ("Function", call.name) in defined.spans and call.name not in defined.functions:
            span = cursor.span(offset + call.start, offset + call.end)
            message = f"Function {display(call.name)} cannot be called: its own definition has an error, which comes first"
            if call.name == function:
                message = f"Function {display(call.name)} cannot call itself: recursive functions are not supported"
            raise cursor.failure_at(span, message, COMPILATION_ERROR)


def _rename_variables(cursor: Cursor, text: str, offset: int, function: str, parameters: Sequence[Parameter]) -> list[Edit]:
    """Return the edits that give the variables of lambdas unique names, which cannot collide with arguments of calls."""
    scan = TokenWalker(text)
    variables: set[str] = set()
    for at in range(len(scan.tokens)):
        if scan.word(at) != "->":
            continue
        opened = scan.opening(at - 1) if scan.word(at - 1) == ")" else at - 1
        variables |= {scan.tokens[place].text for place in range(opened or 0, at) if scan.name(place)}
    edits = []
    for at, token in enumerate(scan.tokens):
        if token.text not in variables or not scan.name(at) or scan.word(at - 1) == "." or scan.word(at + 1) == "(":
            continue
        if any(token.text == parameter.name for parameter in parameters):
            span = cursor.span(offset + token.start, offset + token.end + 1)
            message = f"{display(token.text)} is a variable of this expression and a parameter: give one of them another name"
            raise cursor.failure_at(span, message, COMPILATION_ERROR)
        edits.append(Edit(token.start, token.end + 1, f"`{function}$" + token.text.replace("`", "``") + "`"))
    return edits
