"""The parser of a program's text to a :class:`ParsedProgram`: statements read, names resolved, views in dependency order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from airflow_pipelines.program.messages import COMPILATION_ERROR, ProgramErrors, ProgramMessage, place_order
from airflow_pipelines.program.names import display
from airflow_pipelines.program.relations import Table
from airflow_pipelines.program.source_text import SourceText, twice
from airflow_pipelines.program.spans import Span
from airflow_pipelines.sql.program.declarations import ParsedProgram, ViewDeclaration
from airflow_pipelines.sql.program.definitions import is_definition, read_definitions
from airflow_pipelines.sql.program.provided_functions import with_provided
from airflow_pipelines.sql.program.recursive_views import order_views, recursion_errors, with_declarations
from airflow_pipelines.sql.program.statements.declared import ParsedView, Statements
from airflow_pipelines.sql.program.statements.reader import read_statement
from airflow_pipelines.sql.syntax.cursor import Name
from airflow_pipelines.sql.syntax.relation_names import references
from airflow_pipelines.sql.syntax.tokens import fold_text, split_statements


def parse_program(text: str, udf_python: str = "", given: Sequence[Table] = ()) -> ParsedProgram:
    """Read a program.

    Views may be written in any order; in the result each comes after those it reads, as far as they do not read each other.
    Types and functions are defined in the order written and known to all tables and views.

    :param text: the program's SQL
    :param udf_python: the text of the Python module with the functions that have no body; it is not checked here
    :param given: the relations that are made outside of the text and that its views may read
    :returns: the program with all names of relations resolved; columns and types inside queries are not checked here
    :raises ProgramErrors: if there are errors; it has all of them, each with its position
    """
    folded = fold_text(text)
    parts = split_statements(folded.tokens)
    defining = [tokens for tokens in parts if is_definition(tokens, folded)]
    defined = read_definitions(folded, defining, udf_python)
    definitions = with_provided(defined.definitions, folded.text)
    statements = Statements(messages=defined.messages, definitions=definitions, warnings=defined.warnings)
    for tokens in parts:
        if tokens not in defining:
            read_statement(folded, tokens, statements)
    others = {table.name: table for table in given}
    tables, views = _declare(statements, folded.source, others)
    _add_lateness(statements, {**tables, **others}, views, others, folded.source)
    _check_indexes(statements, others, folded.source)
    known = tables.keys() | views.keys() | others.keys()
    resolved = {name: _resolve(view, known, statements, folded.source) for name, view in views.items()}
    resolved = order_views(with_declarations(resolved, tables, statements, folded.source), statements.messages, folded.source)
    trees = {name: parsed.tree for name, parsed in views.items()}
    statements.messages += recursion_errors(resolved, trees, folded.source)
    if statements.messages:
        raise ProgramErrors(statements.messages)
    warnings = tuple(sorted(statements.warnings, key=place_order))
    return ParsedProgram(
        text,
        tables,
        resolved,
        statements.definitions,
        statements.table_properties,
        defined.bodies,
        warnings,
        tuple(statements.indexes),
        others,
    )


def _declare(
    statements: Statements, source: SourceText, given: Mapping[str, Table]
) -> tuple[dict[str, Table], dict[str, ParsedView]]:
    """Return the relations by name; a name declared twice is an error that gives both positions."""
    spans: dict[str, Span] = {}
    tables: dict[str, Table] = {}
    views: dict[str, ParsedView] = {}
    declared = [(table.span, table.name, table, None) for table in statements.tables]
    declared_views = [(parsed.view.span, parsed.view.name, None, parsed) for parsed in statements.views]
    for span, name, table, parsed in sorted(
        [*declared, *declared_views], key=lambda entry: (entry[0].start_line, entry[0].start_column) if entry[0] else (0, 0)
    ):
        first = spans.get(name)
        if span is not None and first is not None:
            message = f"{display(name)} is declared twice: {twice(first, span)}"
            statements.messages.append(source.message(span, COMPILATION_ERROR, message))
            continue
        if span is not None and name in given:
            message = f"{display(name)} is declared twice: the stream program makes it with to_relation(), too"
            statements.messages.append(source.message(span, COMPILATION_ERROR, message))
        if span is not None:
            spans[name] = span
        if table is not None:
            tables[name] = table
        if parsed is not None:
            views[name] = parsed
    return tables, views


def _add_lateness(
    statements: Statements, tables: Mapping[str, Table], views: dict[str, ParsedView], given: Collection[str], source: SourceText
) -> None:
    """Add to each view the LATENESS statements about it."""
    for name, lateness in statements.lateness:
        parsed = views.get(name.text)
        if parsed is not None:
            view = replace(parsed.view, lateness=(*parsed.view.lateness, lateness))
            views[name.text] = replace(parsed, view=view)
        elif name.text in tables:
            message = f"{display(name.text)} is a table: write LATENESS after the type of its column, in CREATE TABLE"
            if name.text in given:
                message = f"{display(name.text)} is made by the stream program, which decides itself what is too late"
            statements.messages.append(source.message(name.span, COMPILATION_ERROR, message))
        elif name.text not in statements.names:
            statements.messages.append(_not_found(source, name))


def _check_indexes(statements: Statements, given: Collection[str], source: SourceText) -> None:
    """Report indexes with the same name, and indexes on relations that do not exist."""
    known: dict[str, Span] = {}
    for index in statements.indexes:
        first = known.setdefault(index.name.text, index.name.span)
        if first is not index.name.span:
            message = f"Index {display(index.name.text)} is declared twice: {twice(first, index.name.span)}"
            statements.messages.append(source.message(index.name.span, COMPILATION_ERROR, message))
        if index.relation.text not in statements.names and index.relation.text not in given:
            statements.messages.append(_not_found(source, index.relation))


def _resolve(parsed: ParsedView, relations: Collection[str], statements: Statements, source: SourceText) -> ViewDeclaration:
    reads: list[str] = []
    for reference in references(parsed.tree):
        known = not reference.qualified and reference.name in relations
        if known and reference.name not in reads:
            reads.append(reference.name)
        elif not known and (reference.qualified or reference.name not in statements.names):
            place = parsed.view.place(reference.start, reference.end)
            statements.messages.append(object_not_found(source, reference.name, *place))
    return replace(parsed.view, reads=tuple(reads))


def _not_found(source: SourceText, name: Name) -> ProgramMessage:
    start = source.offset(name.span.start_line, name.span.start_column)
    end = source.offset(name.span.end_line, name.span.end_column) + 1
    return object_not_found(source, name.text, start, end)


def object_not_found(source: SourceText, name: str, start: int, end: int) -> ProgramMessage:
    """Return the message about a relation that does not exist, in the form that clients of the REST contract know.

    :param source: the program
    :param name: the relation as it was written
    :param start: the offset of the name in the program
    :param end: the end of the name in the program, exclusive
    """
    span = source.span(start, end)
    place = f"From line {span.start_line}, column {span.start_column} to line {span.end_line}, column {span.end_column}"
    return source.message(span, COMPILATION_ERROR, f"{place}: Object '{name}' not found")
