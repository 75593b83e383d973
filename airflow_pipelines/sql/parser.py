"""Program text -> :class:`Program`: statements read, names resolved, views in dependency order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_pipelines.sql.errors import COMPILATION_ERROR, ProgramErrors, ProgramMessage
from airflow_pipelines.sql.identifiers import display
from airflow_pipelines.sql.program import Program, Span, Table, View
from airflow_pipelines.sql.references import references
from airflow_pipelines.sql.source import Source, twice
from airflow_pipelines.sql.statements import ParsedView, Statements, parse_statement
from airflow_pipelines.sql.tokens import fold_text, split_statements


def parse_program(text: str) -> Program:
    """Read a program.

    Views may be written in any order; in the result each comes after those it reads.

    :param text: the program's SQL
    :returns: the program with all names of relations resolved; columns and types inside queries are not looked at here
    :raises ProgramErrors: with all errors found, each with its place
    """
    folded = fold_text(text)
    statements = Statements()
    for tokens in split_statements(folded.tokens):
        parse_statement(folded, tokens, statements)
    tables, views = _declare(statements, folded.source)
    resolved = {name: _resolve(view, tables, views, statements, folded.source) for name, view in views.items()}
    resolved = _order(resolved, statements.messages, folded.source)
    if statements.messages:
        raise ProgramErrors(statements.messages)
    return Program(text, tables, resolved)


def _declare(statements: Statements, source: Source) -> tuple[dict[str, Table], dict[str, ParsedView]]:
    """The relations by name; a name declared twice is an error that gives both places."""
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
        if span is not None:
            spans[name] = span
        if table is not None:
            tables[name] = table
        if parsed is not None:
            views[name] = parsed
    return tables, views


def _resolve(
    parsed: ParsedView, tables: Mapping[str, Table], views: Mapping[str, ParsedView], statements: Statements, source: Source
) -> View:
    reads: list[str] = []
    for reference in references(parsed.tree):
        known = not reference.qualified and (reference.name in tables or reference.name in views)
        if known and reference.name not in reads:
            reads.append(reference.name)
        elif not known and (reference.qualified or reference.name not in statements.names):
            statements.messages.append(object_not_found(source, reference.name, reference.start, reference.end))
    return replace(parsed.view, reads=tuple(reads))


def object_not_found(source: Source, name: str, start: int, end: int) -> ProgramMessage:
    """The message about a relation that does not exist, in the form that clients of the REST contract know."""
    span = source.span(start, end)
    place = f"From line {span.start_line}, column {span.start_column} to line {span.end_line}, column {span.end_column}"
    return source.message(span, COMPILATION_ERROR, f"{place}: Object '{name}' not found")


def _order(views: dict[str, View], messages: list[ProgramMessage], source: Source) -> dict[str, View]:
    """The views with each after those it reads, else in the order written. A cycle is an error."""
    ordered: dict[str, View] = {}
    for name in views:
        _visit(name, views, ordered, messages, source)
    return ordered


def _visit(start: str, views: dict[str, View], ordered: dict[str, View], messages: list[ProgramMessage], source: Source) -> None:
    # A stack of its own: programs may chain more views than Python's recursion allows.
    path: list[str] = [start]
    on_path = {start}
    while path:
        name = path[-1]
        waiting = [read for read in views[name].reads if read in views and read not in ordered]
        cyclic = next((read for read in waiting if read in on_path), None)
        if cyclic is not None:
            cycle = [*path[path.index(cyclic) :], cyclic]
            span = views[cyclic].span
            message = f"Views read each other in a cycle: {' -> '.join(display(view) for view in cycle)}"
            messages.append(source.message(span or Span(1, 1, 1, 1), COMPILATION_ERROR, message))
            # Take the whole path as seen, so that the same cycle is not reported from each of its views.
            ordered.update({seen: views[seen] for seen in path})
            return
        if name not in ordered and waiting:
            path.append(waiting[0])
            on_path.add(waiting[0])
            continue
        ordered.setdefault(name, views[name])
        on_path.discard(path.pop())
