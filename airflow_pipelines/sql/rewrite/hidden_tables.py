"""The rename of tables that a subquery reads from outside and that a column of its own relations hides.

In SQL ``part.id`` is a column of the table ``part``. Spark looks it up in the subquery first, and takes a column ``part`` there
for the first name.
"""

from __future__ import annotations

from sqlglot import exp

from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.rewrite.probe import sources_of
from airflow_pipelines.sql.syntax.dialect import parse_query
from airflow_pipelines.sql.syntax.edits import Edit

_RENAMED = "__outer_"


def hidden_table_edits(text: str, name: str) -> list[Edit]:
    """Return the edits that rename a table wherever a subquery reads it from outside; empty if no subquery does.

    :param text: Spark SQL
    :param name: the table's name or alias
    """
    read = [column for column in parse_query(text).find_all(exp.Column) if len(column.parts) > 1 and column.parts[0].name == name]
    owners = [_owner(column, name) for column in read]
    nearest = [column.find_ancestor(exp.Select) for column in read]
    renamed = [owner for owner, own in zip(owners, nearest, strict=True) if owner is not None and owner is not own]
    fresh = _RENAMED + name
    while fresh in text:
        fresh += "_"
    edits: dict[int, Edit] = {}
    for column, owner in zip(read, owners, strict=True):
        if owner is not None and any(owner is select for select in renamed):
            declared = _declaration(owner, name, fresh)
            place = column.parts[0].meta
            if declared is None or "start" not in place:
                return []
            edits[declared.start] = declared
            edits[place["start"]] = Edit(place["start"], place["end"] + 1, quote(fresh))
    return list(edits.values())


def _owner(column: exp.Column, name: str) -> exp.Select | None:
    """Return the SELECT whose table a column belongs to."""
    select = column.find_ancestor(exp.Select)
    while select is not None and all(source.alias_or_name != name for source in sources_of(select)):
        select = select.find_ancestor(exp.Select)
    return select


def _declaration(owner: exp.Select, name: str, fresh: str) -> Edit | None:
    """Return the edit that renames a source of a SELECT, or None if the position of its name is not known."""
    source = next(source for source in sources_of(owner) if source.alias_or_name == name)
    alias = source.args.get("alias")
    written = alias.this if alias is not None else source.this
    if not isinstance(written, exp.Identifier) or "start" not in written.meta:
        return None
    if alias is not None:
        return Edit(written.meta["start"], written.meta["end"] + 1, quote(fresh))
    end = written.meta["end"] + 1
    return Edit(end, end, f" AS {quote(fresh)}")
