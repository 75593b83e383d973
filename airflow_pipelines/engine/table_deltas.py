"""The first part of a step: the conversion of the tables' changes to deltas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_pipelines.engine.allowed_changes import truncation_problem
from airflow_pipelines.engine.arrival_order import ROWS_PER_STEP, Arrived
from airflow_pipelines.engine.batch import Batch
from airflow_pipelines.engine.compaction import replacing
from airflow_pipelines.engine.execution.context import Context
from airflow_pipelines.engine.lateness import Late
from airflow_pipelines.engine.normalise import Lookup, Normaliser, Rejected
from airflow_pipelines.engine.operators.matching_rows import matching_rows
from airflow_pipelines.engine.program import Program
from airflow_pipelines.engine.snapshot import Snapshot
from airflow_pipelines.engine.spark.failures import step_error
from airflow_pipelines.engine.spark.intervals import format_intervals
from airflow_pipelines.engine.spark.schemas import spark_schema
from airflow_pipelines.engine.storage.errors import StorageError
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.engine.wiring import Wiring
from airflow_pipelines.rows.changes import TableChanges


@dataclass(frozen=True, slots=True)
class TableDeltas:
    """The deltas of a step's changes.

    :param deltas: the deltas by table
    :param rejected: the rejected changes
    :param late: the rows that were left out because they were behind a waterline
    """

    deltas: Mapping[str, Batch]
    rejected: tuple[Rejected, ...]
    late: tuple[Late, ...]


def table_deltas(
    changes: Iterable[TableChanges], program: Program, wiring: Wiring, base: Snapshot, context: Context, arrived: int = 0
) -> TableDeltas:
    """Normalise the changes of all tables.

    :param changes: the changes in arrival order
    :param program: the program of the tables
    :param wiring: the wiring of the program's circuit
    :param base: the contents before the step
    :param context: the context that finds stored rows
    :param arrived: the number of rows that have arrived earlier for the same step
    :raises StepError: when stored rows cannot be looked up
    :raises StorageError: when rows cannot be read
    :raises ValueError: when a change is not allowed for its table
    """
    deltas: dict[str, Batch] = {}
    rejected: list[Rejected] = []
    late: list[Late] = []
    for name, parts in _group_by_table(changes, (base.step + 1) * ROWS_PER_STEP + arrived).items():
        schema = program.schemas[name]
        stored = base.traces.get(name) or Trace(wiring.schemas[name])
        truncation = _find_last_truncation(parts)
        if truncation is None:
            trace = stored
        elif problem := truncation_problem(program, program.tables[name]):
            raise ValueError(problem)
        else:
            trace = Trace(stored.schema)
            parts = [*map(_drop_rows, parts[:truncation]), *parts[truncation:]]
        normaliser = Normaliser(program.tables[name], schema, _lookup(trace, context))
        normaliser.waterlines = base.waterlines.get(name, {})
        if name in wiring.ordered:
            normaliser.first_numbers = [part.first for part in parts]
        try:
            delta = Batch.in_memory(wiring.schemas[name], normaliser.delta([part.changes for part in parts]))
            deltas[name] = delta if truncation is None else replacing(stored, delta, context)
        except Exception as error:
            if isinstance(error, ValueError | StorageError):
                raise
            raise step_error(name, error) from error
        rejected += normaliser.rejected
        late += [Late(name, format_intervals(rows, spark_schema(schema)), normaliser.waterlines) for rows in normaliser.late]
    return TableDeltas(deltas, tuple(rejected), tuple(late))


def _group_by_table(changes: Iterable[TableChanges], arrived: int) -> dict[str, list[Arrived]]:
    """Return the changes of each table with the number of their first row. The first row of all has the number ``arrived``."""
    groups: dict[str, list[Arrived]] = {}
    for change in changes:
        groups.setdefault(change.table, []).append(Arrived(change, arrived))
        arrived += change.rows.num_rows
    return groups


def _find_last_truncation(parts: Sequence[Arrived]) -> int | None:
    """Return the index of the last of a table's changes that truncates the table, or None if none does."""
    return max((number for number, part in enumerate(parts) if part.changes.truncates), default=None)


def _drop_rows(part: Arrived) -> Arrived:
    """Return changes without their rows, for changes that a later truncation makes void."""
    return replace(part, changes=replace(part.changes, rows=part.changes.rows.slice(0, 0)))


def _lookup(trace: Trace, context: Context) -> Lookup:
    return lambda wanted, names: matching_rows(trace, wanted, names, context)
