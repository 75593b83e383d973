"""Fingerprints of a program's parts, and the difference between two programs that a person approves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_pipelines.sql.program.normal_form import normalise_query
from airflow_pipelines.sql.program.parsed import Column, Connector, ConnectorDirection, Program, Table, View

_INPUT_TUNING = frozenset({"paused", "max_batch_size", "max_worker_batch_size", "max_queued_records", "max_queued_bytes"})
_OUTPUT_TUNING = frozenset({"paused"})
_TRANSIENT = frozenset({"adhoc", "clock", "http_input", "http_output"})


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """One hash per relation and connector (``relation.connector``); equal hashes mean that state can be kept."""

    tables: dict[str, str] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    input_connectors: dict[str, str] = field(default_factory=dict)
    output_connectors: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    """The relation of each connector: names may have dots in them."""

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Fingerprints:
        """The fingerprints that :meth:`to_json` wrote.

        :raises TypeError: when the object has other keys
        """
        return cls(**{key: dict(part) for key, part in value.items()})


@dataclass(frozen=True, slots=True)
class ProgramDiff:
    """Sorted canonical names of the relations that differ between two programs."""

    added_tables: tuple[str, ...] = ()
    removed_tables: tuple[str, ...] = ()
    modified_tables: tuple[str, ...] = ()
    added_views: tuple[str, ...] = ()
    removed_views: tuple[str, ...] = ()
    modified_views: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether no relation differs."""
        return not any(asdict(self).values())


@dataclass(frozen=True, slots=True)
class PipelineDiff:
    """The difference between two programs. ``program_diff`` is None when the old program is unavailable, ``error`` says why."""

    program_diff: ProgramDiff | None = field(default_factory=ProgramDiff)
    program_diff_error: str | None = None
    added_input_connectors: tuple[str, ...] = ()
    modified_input_connectors: tuple[str, ...] = ()
    removed_input_connectors: tuple[str, ...] = ()
    added_output_connectors: tuple[str, ...] = ()
    modified_output_connectors: tuple[str, ...] = ()
    removed_output_connectors: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs, so that a pipeline can simply resume."""
        if self.program_diff is None or not self.program_diff.is_empty:
            return False
        return not any(value for key, value in asdict(self).items() if key.endswith("_connectors"))

    def to_wire(self) -> dict[str, Any]:
        """The object that the REST contract shows for approval."""
        wire: dict[str, Any] = {
            key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items() if key != "program_diff"
        }
        program = None if self.program_diff is None else {key: list(value) for key, value in asdict(self.program_diff).items()}
        return {"program_diff": program, **wire}


def fingerprint(program: Program, view_columns: Mapping[str, Sequence[Column]]) -> Fingerprints:
    """The fingerprints of a program.

    Spelling does not count: white space, comments, case of unquoted names, ``*`` or the columns it stands for, alias names.
    A view's fingerprint contains those of the relations it reads, so a change goes down to every reader.

    :param program: the program
    :param view_columns: the columns of each view by its canonical name
    """
    tables = {table.name: _hash(_describe_table(table)) for table in program.tables.values()}
    names: dict[str, Sequence[str]] = {table.name: [c.name for c in table.columns] for table in program.tables.values()}
    names |= {view: [column.name for column in columns] for view, columns in view_columns.items()}
    found = dict(tables)
    for view in program.views.values():
        if view.name not in found:
            found |= _hash_views(_together(view, program), view_columns, found, names)
    connectors = [connector for connector in program.connectors() if connector.transport not in _TRANSIENT]
    return Fingerprints(
        tables=tables,
        views={view: found[view] for view in program.views},
        input_connectors={c.endpoint: _hash(_describe(c)) for c in connectors if c.direction is ConnectorDirection.INPUT},
        output_connectors={c.endpoint: _hash(_describe(c)) for c in connectors if c.direction is ConnectorDirection.OUTPUT},
        owners={c.endpoint: c.relation for c in connectors},
    )


def compare(old: Fingerprints, new: Fingerprints) -> PipelineDiff:
    """What changes when a pipeline goes from ``old`` to ``new``."""
    new_relations = {**new.tables, **new.views}

    def kept(connectors: Mapping[str, str]) -> dict[str, str]:
        # With its relation a connector goes without a word of its own.
        return {name: value for name, value in connectors.items() if old.owners.get(name) in new_relations}

    tables, views = _parts(old.tables, new.tables), _parts(old.views, new.views)
    inputs = _parts(kept(old.input_connectors), new.input_connectors)
    outputs = _parts(kept(old.output_connectors), new.output_connectors)
    return PipelineDiff(
        ProgramDiff(
            added_tables=tables[0],
            removed_tables=tables[1],
            modified_tables=tables[2],
            added_views=views[0],
            removed_views=views[1],
            modified_views=views[2],
        ),
        added_input_connectors=inputs[0],
        removed_input_connectors=inputs[1],
        modified_input_connectors=inputs[2],
        added_output_connectors=outputs[0],
        removed_output_connectors=outputs[1],
        modified_output_connectors=outputs[2],
    )


def program_hash(fingerprints: Fingerprints) -> int:
    """An unsigned 64-bit number that is the same for programs between which there is no difference."""
    return int(_hash(fingerprints.to_json())[:16], 16)


def _parts(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Added, removed and modified names."""
    added = tuple(sorted(new.keys() - old.keys()))
    removed = tuple(sorted(old.keys() - new.keys()))
    return added, removed, tuple(sorted(name for name in old.keys() & new.keys() if old[name] != new[name]))


def _describe_table(table: Table) -> dict[str, Any]:
    skip = table.properties.get("skip_unused_columns")
    return {
        "kind": "table",
        "columns": [_describe_column(column) for column in table.columns],
        "primary_key": table.primary_key,
        "materialized": table.materialized,
        "append_only": table.append_only,
        "skip_unused_columns": skip is not None and skip.value.strip().lower() == "true",
    }


def _describe_column(column: Column) -> list[Any]:
    return [column.name, column.type.to_wire(), column.lateness]


def _together(view: View, program: Program) -> list[View]:
    """The views that can only be told apart from other programs' together: those of a circle, else the view alone."""
    return [program.views[name] for name in view.cycle] if view.cycle else [view]


def _hash_views(
    views: Sequence[View],
    view_columns: Mapping[str, Sequence[Column]],
    found: Mapping[str, str],
    names: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """The fingerprints of views that read each other; a change of one changes all of them."""
    # Within the circle a read counts by its name alone: the texts of all members are in each fingerprint anyway.
    known = {**{view.name: "in the same circle" for view in views if view.cycle}, **found}
    described = {view.name: _describe_view(view, view_columns[view.name], known, names) for view in views}
    if len(views) == 1:
        return {name: _hash(one) for name, one in described.items()}
    return {name: _hash({"view": name, "circle": described}) for name in described}


def _describe_view(
    view: View, columns: Sequence[Column], found: Mapping[str, str], names: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    readable = {name: names[name] for name in view.reads}
    return {
        # Declared recursive, a view is a set of rows.
        "kind": view.kind.value if view.declared is None else f"recursive {view.kind.value}",
        "columns": [[column.name, column.type.to_wire()] for column in columns],
        "query": normalise_query(view.query, readable),
        "reads": {name: found[name] for name in view.reads},
        **_describe_time(view),
    }


def _describe_time(view: View) -> dict[str, Any]:
    """What a view has to do with waterlines; nothing for most."""
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


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=dict)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
