"""Rows of the changes that a server sends, without a server."""

from __future__ import annotations

from dataclasses import replace

from airflow_pipelines.connectors.transports.postgresql.change_rows import ChangeRows
from airflow_pipelines.connectors.transports.postgresql.options import InvalidValues
from airflow_pipelines.connectors.transports.postgresql.pgoutput import Missing, PublishedColumn, Relation, Update
from airflow_pipelines.connectors.transports.postgresql.source_types import SourceType, ValueShape
from airflow_pipelines.rows.changes import OP
from tests.connectors.relations import col, relation

_TYPES = {1: SourceType("int4", "integer", ValueShape.NUMBER), 2: SourceType("text", "text", ValueShape.TEXT)}
_TABLE = Relation(9, "public", "t", (PublishedColumn("id", 1), PublishedColumn("large", 2), PublishedColumn("n", 1)))
_SCHEMA = relation(col("id", "TINYINT", null=False), col("large", "VARCHAR"), col("n", "TINYINT", null=False))


def test_a_malformed_update_that_leaves_a_large_value_alone_counts_once() -> None:
    made = ChangeRows(replace(_SCHEMA, primary_key=("id",)), lambda: 0, "postgres_cdc_input", InvalidValues.REFUSE)
    made.describe(_TABLE, _TYPES.__getitem__)
    # No row of the table can have the key of the first; the row of the second goes.
    updates = [Update(9, None, False, [text, Missing.UNCHANGED, "1000"]) for text in ("300", "3")]
    parsed = made.parse([entry for update in updates for entry in made.entries(update)], 1, "here")
    assert parsed.num_errors == 2
    assert 'id = "300"' in parsed.errors[0].message
    assert 'id = "3"' in parsed.errors[1].message
    assert parsed.changes is not None
    assert [(row["id"], row[OP]) for row in parsed.changes.rows.to_pylist()] == [(3, -1)]
