"""The fingerprints of a SQL program: hashes of the meaning of its declarations, not of their spelling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.program.fingerprints import Fingerprints, digest
from airflow_pipelines.program.names import canonical
from airflow_pipelines.program.relations import Index, Table
from airflow_pipelines.rows.schema import Column
from airflow_pipelines.sql.program.declarations import ParsedProgram, ViewDeclaration
from airflow_pipelines.sql.program.normal_form import normalise_query

_INPUT_TUNING = frozenset({"paused", "max_batch_size", "max_worker_batch_size", "max_queued_records", "max_queued_bytes"})
_OUTPUT_TUNING = frozenset({"paused"})
_TRANSIENT = frozenset({"adhoc", "clock", "http_input", "http_output"})


def fingerprint(program: ParsedProgram, view_columns: Mapping[str, Sequence[Column]]) -> Fingerprints:
    """Compute the fingerprints of a program.

    Spelling does not count: white space, comments, case of unquoted names, ``*`` or the columns it stands for, alias names.
    A view's fingerprint contains those of the relations it reads, so that a change propagates to every reader.

    :param program: the program
    :param view_columns: the columns of each view by its canonical name
    """
    tables = {table.name: digest(_describe_table(table)) for table in program.tables.values()}
    names: dict[str, Sequence[str]] = {table.name: [c.name for c in table.columns] for table in program.tables.values()}
    names |= {view: [column.name for column in columns] for view, columns in view_columns.items()}
    names |= {table.name: [c.name for c in table.columns] for table in program.given.values()}
    hashes = tables | {table.name: given_fingerprint(table) for table in program.given.values()}
    for view in program.views.values():
        if view.name not in hashes:
            hashes |= _hash_views(_find_cycle_members(view, program), view_columns, hashes, names)
    connectors = [connector for connector in program.connectors() if connector.transport not in _TRANSIENT]
    indexes = {declared.index.name: declared.index for declared in program.indexes}
    return Fingerprints(
        tables=tables,
        views={view: hashes[view] for view in program.views},
        input_connectors={c.endpoint: digest(_describe(c)) for c in connectors if c.direction is ConnectorDirection.INPUT},
        output_connectors={
            c.endpoint: digest(_describe_output(c, indexes)) for c in connectors if c.direction is ConnectorDirection.OUTPUT
        },
        owners={c.endpoint: c.relation for c in connectors},
    )


def given_fingerprint(table: Table) -> str:
    """Compute the fingerprint of a relation that is made outside of the program's text, from its columns and its key.

    :param table: the relation
    """
    return digest({"kind": "given", "columns": [_describe_column(column) for column in table.columns], "key": table.primary_key})


def _describe_table(table: Table) -> dict[str, Any]:
    return {
        "kind": "table",
        "columns": [_describe_column(column) for column in table.columns],
        "primary_key": table.primary_key,
        "materialized": table.materialized,
        "append_only": table.append_only,
        "skip_unused_columns": table.skip_unused_columns,
    }


def _describe_column(column: Column) -> list[Any]:
    return [column.name, column.type.to_wire(), column.lateness]


def _find_cycle_members(view: ViewDeclaration, program: ParsedProgram) -> list[ViewDeclaration]:
    """Return the views that are fingerprinted together: those of a cycle, else the view alone."""
    return [program.views[name] for name in view.cycle] if view.cycle else [view]


def _hash_views(
    views: Sequence[ViewDeclaration],
    view_columns: Mapping[str, Sequence[Column]],
    hashes: Mapping[str, str],
    names: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """Return the fingerprints of views that read each other; a change of one changes all of them."""
    # Within the cycle a read counts by its name alone: the texts of all members are in each fingerprint anyway.
    known = {**{view.name: "in the same circle" for view in views if view.cycle}, **hashes}
    described = {view.name: _describe_view(view, view_columns[view.name], known, names) for view in views}
    if len(views) == 1:
        return {name: digest(one) for name, one in described.items()}
    return {name: digest({"view": name, "circle": described}) for name in described}


def _describe_view(
    view: ViewDeclaration, columns: Sequence[Column], hashes: Mapping[str, str], names: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    readable = {name: names[name] for name in view.reads}
    return {
        # A view that is declared recursive is a set of rows.
        "kind": view.kind.value if view.declared is None else f"recursive {view.kind.value}",
        "columns": [[column.name, column.type.to_wire()] for column in columns],
        "query": normalise_query(view.query, readable),
        "reads": {name: hashes[name] for name in view.reads},
        **_describe_time(view),
    }


def _describe_time(view: ViewDeclaration) -> dict[str, Any]:
    """Return the description of a view's lateness and ``emit_final``, which is empty for most views."""
    described: dict[str, Any] = {}
    if view.lateness:
        described["lateness"] = [[lateness.column, lateness.bound] for lateness in view.lateness]
    if view.emit_final is not None:
        described["emit_final"] = view.emit_final.value.strip()
    return described


def _describe(connector: Connector) -> dict[str, Any]:
    tuning = _INPUT_TUNING if connector.direction is ConnectorDirection.INPUT else _OUTPUT_TUNING
    return {
        "transport": [connector.transport, connector.transport_config],
        "format": [connector.format, connector.format_config],
        "options": {key: value for key, value in connector.options.items() if key not in tuning},
    }


def _describe_output(connector: Connector, indexes: Mapping[str, Index]) -> dict[str, Any]:
    """Return the description of an output, with the columns of its index."""
    name = connector.options.get("index")
    index = indexes.get(canonical(name)) if isinstance(name, str) else None
    return _describe(connector) if index is None else {**_describe(connector), "index": index.columns}
