"""Queries that merge the batches of a large relation while they read it, without an exchange of its rows.

Only a row that some batch takes away has to be added up. So the hashes of the rows with negative weights are collected first: they
are few. All rows with other hashes come as they are read. Those with the same hashes, with whatever other rows share one of these,
are added up at the end, in one task that reads the batches a second time and keeps these rows only.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_pipelines.engine.batch import WEIGHT
from airflow_pipelines.engine.batch_views import BatchViews, grouping_key
from airflow_pipelines.engine.spark.type_text import type_text
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.program.names import quote
from airflow_pipelines.sql.values.row_hash import row_hash

_HASH = "`__hash`"
_COPIES = f"LATERAL VIEW EXPLODE(ARRAY_REPEAT(0, INT({WEIGHT}))) AS `__n`"
"""Repeats each row as often as its weight says."""


def merge_on_read(trace: Trace, key: Sequence[str], views: BatchViews) -> str:
    """A query for the contents of a relation as a plain multiset.

    :param trace: of the relation; it has columns, rows that are only inserted and others, and nothing but weights is merged
    :param key: the columns of the relation's primary key, by which its rows are told apart then; none for all columns
    :param views: name the batches
    """
    kinds = {field.name: type_text(field.dataType) for field in trace.schema.fields}
    hashed = row_hash({f"s.{quote(name)}": kinds[name] for name in key or trace.columns})
    inserted = views.rows(tuple(batch for batch in trace.batches if batch.insert_only))
    mixed = views.rows(tuple(batch for batch in trace.batches if not batch.insert_only))
    taken = f"(SELECT {hashed} AS {_HASH} FROM {mixed} AS s WHERE s.{WEIGHT} < 0) AS c ON {hashed} = c.{_HASH}"
    begin, columns = "SELECT /*+ BROADCAST(c) */ s.* FROM", ", ".join(quote(name) for name in trace.columns)
    touched = f"({begin} {views.rows(trace.batches)} AS s LEFT SEMI JOIN {taken})"
    parts = (
        f"SELECT {columns} FROM ({begin} {inserted} AS s LEFT ANTI JOIN {taken})",
        f"SELECT {columns} FROM ({begin} {mixed} AS s LEFT ANTI JOIN {taken} WHERE s.{WEIGHT} > 0) {_COPIES}",
        f"SELECT {columns} FROM ({_added_up(trace, touched)}) {_COPIES}",
    )
    return " UNION ALL ".join(parts)


def _added_up(trace: Trace, rows: str) -> str:
    """A query that adds up rows in one task, and keeps those whose weight is positive."""
    kinds = {field.name: type_text(field.dataType) for field in trace.schema.fields}
    groups = {name: grouping_key(f"s.{quote(name)}", kinds[name]) for name in trace.keys}
    made = {name: f"`__group{at}`" for at, name in enumerate(trace.keys) if groups[name] != f"s.{quote(name)}"}
    # Spark forgets that there is one partition when it calls Python, so that what it groups by is made before.
    items = ", ".join(["s.*", *(f"{groups[name]} AS {group}" for name, group in made.items())])
    keys = (f"ANY_VALUE({quote(name)}) AS {quote(name)}" if name in made else quote(name) for name in trace.keys)
    by = ", ".join(made.get(name, quote(name)) for name in trace.keys)
    one = f"SELECT /*+ COALESCE(1) */ * FROM (SELECT {items} FROM {rows} AS s)"
    return f"SELECT {', '.join(keys)}, SUM({WEIGHT}) AS {WEIGHT} FROM ({one}) GROUP BY {by} HAVING SUM({WEIGHT}) > 0"
