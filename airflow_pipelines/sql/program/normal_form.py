"""The normal form of a query: a text that is the same for queries that differ only in spelling."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.schema import MappingSchema

from airflow_pipelines.sql.syntax.dialect import PipelineSpark, parse_query, tokenise

_EXACT = PipelineSpark(normalization_strategy="case_sensitive")
_log = logging.getLogger(__name__)


def normalise_query(query: str, relations: Mapping[str, Sequence[str]]) -> str:
    """Return a text that is the same for queries that differ only in white space, comments, star or named columns, and alias names.

    :param query: Spark SQL with folded names
    :param relations: the column names of all relations that the query may read
    """
    try:
        return _resolve(query, relations)
    except (SqlglotError, RecursionError) as failure:
        # Not every query that Spark understands can be resolved symbolically; its words without comments are compared then.
        _log.debug("query is compared word by word: %s", failure)
        return " ".join(query[token.start : token.end + 1] for token in tokenise(query))


def _resolve(query: str, relations: Mapping[str, Sequence[str]]) -> str:
    columns: dict[str, object] = {name: dict.fromkeys(names, "unknown") for name, names in relations.items()}
    schema = MappingSchema(columns, dialect=_EXACT, normalize=False)
    tree = qualify(parse_query(query), schema=schema, dialect=_EXACT, quote_identifiers=True, validate_qualify_columns=True)
    _rename_aliases(tree)
    for node in tree.walk():
        node.comments = None
    return tree.sql(dialect=_EXACT, comments=False)


def _rename_aliases(tree: exp.Expr) -> None:
    """Give every source of every FROM a name that depends only on its position."""
    scopes = traverse_scope(tree)
    names: dict[tuple[int, str], str] = {}
    for at, scope in enumerate(scopes):
        for place, alias in enumerate(scope.sources):
            names[(id(scope), alias)] = f"s{at}_{place}"
    renamed: list[tuple[exp.Identifier, str]] = []
    for scope in scopes:
        for column in scope.columns:
            owner = _owner(scope, column.table)
            table = column.args.get("table")
            if owner is not None and isinstance(table, exp.Identifier):
                renamed.append((table, names[(id(owner), column.table)]))
        for alias, source in scope.sources.items():
            identifier = _alias_of(scope, alias, source)
            if identifier is not None:
                renamed.append((identifier, names[(id(scope), alias)]))
    # Only now: the lookups above read the old names. An identifier seen from two scopes keeps its first new name.
    done: set[int] = set()
    for identifier, name in renamed:
        if id(identifier) not in done:
            identifier.set("this", name)
            done.add(id(identifier))


def _owner(scope: Scope | None, alias: str) -> Scope | None:
    while scope is not None:
        if alias in scope.sources:
            return scope
        scope = scope.parent
    return None


def _alias_of(scope: Scope, alias: str, source: exp.Expr | Scope) -> exp.Identifier | None:
    """Return the identifier that gives a source its name, if the query wrote one (or qualifying did)."""
    selected = scope.selected_sources.get(alias)
    places: list[exp.Expr | None] = [selected[0]] if selected else []
    if isinstance(source, Scope):
        places.append(source.expression.parent)
    for place in places:
        if isinstance(place, (exp.Table, exp.Subquery)):
            table_alias = place.args.get("alias")
            if isinstance(table_alias, exp.TableAlias) and isinstance(table_alias.this, exp.Identifier):
                return table_alias.this
    return None
