"""The compilation of tables: their schemas, their lateness, and the constants of DEFAULT."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from airflow_pipelines.compiler.compilation import Compilation
from airflow_pipelines.compiler.literal_defaults import is_literal, literal_value
from airflow_pipelines.compiler.varying_defaults import DefaultGroup, DefaultsFromMetadata, VaryingDefaults, at_time, reads_clock
from airflow_pipelines.engine.spark.analysis import QueryRefused, is_unknown_name
from airflow_pipelines.program.names import display, quote
from airflow_pipelines.program.relations import Table, span_of
from airflow_pipelines.rows.formats.defaults import is_the_time
from airflow_pipelines.rows.schema import Column, RelationSchema, arrow_type
from airflow_pipelines.sql.rewrite.bare_clock_calls import bare_clock_edits
from airflow_pipelines.sql.rewrite.casts import stored_text
from airflow_pipelines.sql.rewrite.connector_metadata import reads_metadata, with_metadata, without_metadata
from airflow_pipelines.sql.syntax.edits import Edited
from airflow_pipelines.sql.syntax.hints import string_hint

T = TypeVar("T")
_SOME_TIME = 1_700_000_000_000_000
"""The time at which DEFAULTs that read the clock are checked, in microseconds since the epoch."""


def add_table(compilation: Compilation, table: Table) -> None:
    """Add a table to a program, and note errors in its columns."""
    columns = [column for column in table.columns if column.default is not None]
    defaults = _defaults(compilation, columns) if columns else _Defaults()
    schema = RelationSchema(
        table.name, table.columns, tuple(table.primary_key or ()), defaults.constants, defaults.varying, defaults.described
    )
    compilation.add_schema(schema)
    compilation.time.add_table(table, schema)


@dataclass(frozen=True, slots=True)
class _Defaults:
    """The DEFAULTs of a table, except those that are just the current time, which inputs know themselves."""

    constants: Mapping[str, Any] = field(default_factory=dict)
    varying: VaryingDefaults | None = None
    described: DefaultsFromMetadata | None = None


def _defaults(compilation: Compilation, columns: Sequence[Column]) -> _Defaults:
    """Check the DEFAULTs of a table, and evaluate those that are constants.

    :param columns: the columns that have a DEFAULT
    """
    analysis = compilation.analysis
    casts = {column.name: _cast(column) for column in columns}
    # In the form in which they are evaluated later: Spark's own clock functions have another type.
    timed = {name: at_time(text, _SOME_TIME) for name, text in casts.items()}
    clocked = [column for column in columns if reads_clock(casts[column.name])]
    others = [column for column in columns if column not in clocked]
    checks = [_evaluate(compilation, others, timed, lambda _, query: analysis.evaluate_constants(query))] if others else []
    # They are only analyzed: they may fail at this time and succeed at another.
    checks += [_evaluate(compilation, clocked, timed, lambda _, query: analysis.analyze(query))] if clocked else []
    if None in checks:
        return _Defaults()
    constants = _read_literals(columns)
    evaluated = [column for column in columns if column.name not in constants and not is_the_time(column)]
    random = [column for column in evaluated if not analysis.analyze(f"SELECT {timed[column.name]}").deterministic]
    constant = [column for column in evaluated if column not in random and column not in clocked]
    if constant:
        row = _evaluate(compilation, constant, casts, lambda some, query: analysis.rows(query, _types(some))[0])
        constants |= row or {}
    # Grouped so that random values that do not depend on the time are made in advance, and clock values once per time.
    groups = (
        ([column for column in random if column not in clocked], True),
        ([column for column in random if column in clocked], True),
        ([column for column in evaluated if column in clocked and column not in random], False),
    )
    varying = [
        DefaultGroup(analysis, {column.name: casts[column.name] for column in group}, _types(group), random=is_random)
        for group, is_random in groups
        if group
    ]
    described = [column for column in columns if reads_metadata(column.default or "")]
    return _Defaults(
        constants,
        VaryingDefaults(varying) if varying else None,
        DefaultsFromMetadata(analysis, {column.name: _cast(column, with_metadata) for column in described}, _types(described))
        if described
        else None,
    )


def _read_literals(columns: Sequence[Column]) -> dict[str, Any]:
    """Read the DEFAULTs that are literals. Literals in a form that only Spark reads are left to Spark."""
    values = {}
    for column in columns:
        if is_literal(column):
            with suppress(ValueError):
                values[column.name] = literal_value(column)
    return values


def _evaluate(
    compilation: Compilation, columns: Sequence[Column], casts: Mapping[str, str], evaluate: Callable[[Sequence[Column], str], T]
) -> T | None:
    """Return the result of a query of some DEFAULTs, or None if one of them is wrong, which is noted.

    :param columns: their columns
    :param casts: the Spark SQL of each, by column
    :param evaluate: takes some of the columns, and a query of their DEFAULTs
    """
    items = {column: f"{casts[column.name]} AS {quote(column.name)}" for column in columns}
    try:
        return evaluate(columns, f"SELECT {', '.join(items.values())}")
    except QueryRefused as refused:
        if len(columns) == 1:
            _note(compilation, columns[0], refused)
            return None
    # Only if the query of all fails, each is evaluated alone to find the wrong ones.
    for column in columns:
        _evaluate(compilation, [column], casts, evaluate)
    return None


def _cast(column: Column, rewritten: Callable[[str], str] = without_metadata) -> str:
    expression = rewritten(column.default or "")
    value = Edited(expression).edit(bare_clock_edits(expression)).text
    return stored_text(value, column.type)


def _types(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def _note(compilation: Compilation, column: Column, refused: QueryRefused) -> None:
    # A DEFAULT cannot read columns, so a quoted name in it is probably meant as a string.
    name = re.search(r"`([^`]*)`", column.default or "")
    hint = string_hint(f'"{name[1]}"') if name is not None and is_unknown_name(refused) else ""
    compilation.note(span_of(column), f"The DEFAULT of column {display(column.name)} is wrong: {refused.message}{hint}")
