"""Checks of views that read each other in a cycle: their declarations, the order of evaluation, and errors in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from airflow_pipelines.program.messages import COMPILATION_ERROR, ProgramMessage
from airflow_pipelines.program.names import display
from airflow_pipelines.program.relations import Table
from airflow_pipelines.program.source_text import SourceText, twice
from airflow_pipelines.program.spans import Span
from airflow_pipelines.sql.plan.properties.monotone import not_monotone
from airflow_pipelines.sql.program.cycles import components
from airflow_pipelines.sql.program.declarations import ViewDeclaration
from airflow_pipelines.sql.program.statements.declared import Statements


def with_declarations(
    views: Mapping[str, ViewDeclaration], tables: Mapping[str, Table], statements: Statements, source: SourceText
) -> dict[str, ViewDeclaration]:
    """Add the columns of DECLARE RECURSIVE VIEW to the views; report declarations that do not fit.

    :param views: the views by name
    :param tables: the tables by name
    :param statements: the declarations of the program; errors are added
    :param source: the program's text
    """
    declared = dict(views)
    places: dict[str, Span] = {}
    for declaration in statements.declarations:
        name = declaration.name
        message = None
        if name in places:
            message = f"{display(name)} is declared twice: {twice(places[name], declaration.span)}"
        elif name in tables:
            message = f"{display(name)} is declared as a recursive view and created as a table"
        elif name in views:
            declared[name] = replace(views[name], declared=declaration.columns)
        elif name not in statements.attempted:
            message = f"View {display(name)} is declared and never created: add CREATE VIEW {display(name)} AS <query>"
        places.setdefault(name, declaration.span)
        if message is not None:
            statements.messages.append(source.message(declaration.span, COMPILATION_ERROR, message))
    return declared


def order_views(
    views: Mapping[str, ViewDeclaration], messages: list[ProgramMessage], source: SourceText
) -> dict[str, ViewDeclaration]:
    """Return the views in dependency order, otherwise in the order written, with their cycles in ``cycle``.

    Of a cycle those declared recursive come first. A cycle without a declared view is an error.

    :param views: the views by name
    :param messages: the list to which errors are added
    :param source: the program's text
    """
    placed: dict[str, ViewDeclaration] = {}
    for component in components({name: view.reads for name, view in views.items()}):
        if len(component) == 1 and component[0] not in views[component[0]].reads:
            placed[component[0]] = views[component[0]]
            continue
        members = {name: replace(views[name], cycle=component) for name in component}
        placed.update({name: view for name, view in members.items() if view.declared is not None})
        others = {name: view for name, view in members.items() if view.declared is None}
        for part in components({name: view.reads for name, view in others.items()}):
            if len(part) > 1 or part[0] in others[part[0]].reads:
                messages.append(_make_undeclared_error(part, others, source))
            placed.update({name: others[name] for name in part})
    return placed


def recursion_errors(
    views: Mapping[str, ViewDeclaration], trees: Mapping[str, exp.Query], source: SourceText
) -> list[ProgramMessage]:
    """Return the errors, with positions, about reads in the queries of a cycle that are not monotone in the views of the cycle.

    :param views: the views by name
    :param trees: the trees of their queries
    :param source: the program's text
    """
    messages = []
    for name, view in views.items():
        if not any(views[member].declared is not None for member in view.cycle):
            continue
        for refusal in not_monotone(trees[name], frozenset(view.cycle)):
            read = refusal.read
            message = (
                f"View {display(name)} is part of a recursion and reads {display(read.name)} {refusal.reason}: there more rows of "
                f"{display(read.name)} can mean fewer rows of {display(name)}, so the recursion would have no definite result"
            )
            messages.append(source.message(source.span(*view.place(read.start, read.end)), COMPILATION_ERROR, message))
    return messages


def _make_undeclared_error(names: tuple[str, ...], views: Mapping[str, ViewDeclaration], source: SourceText) -> ProgramMessage:
    """Return the error about a cycle of views of which none is declared recursive; it shows one path around it."""
    path = [names[0]]
    while True:
        following = next(name for name in views[path[-1]].reads if name in names)
        if following in path:
            path = [*path[path.index(following) :], following]
            break
        path.append(following)
    message = (
        f"Views read each other in a cycle: {' -> '.join(map(display, path))}. "
        f"To compute them by recursion, add DECLARE RECURSIVE VIEW {display(path[0])}(<columns and types>)"
    )
    return source.message(views[path[0]].span or Span(1, 1, 1, 1), COMPILATION_ERROR, message)
