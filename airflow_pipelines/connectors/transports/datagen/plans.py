"""Executable plans, which turn numbers of rows into rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.connectors.transports.datagen.columns import maker_of, settings_by_name
from airflow_pipelines.connectors.transports.datagen.makers import Maker, PlanProblem
from airflow_pipelines.connectors.transports.datagen.options import DatagenOptions, FieldOptions, PlanOptions
from airflow_pipelines.rows.changes import Op
from airflow_pipelines.rows.formats.parsed import changes_schema
from airflow_pipelines.rows.schema import RelationSchema

_LARGEST_CHUNK = 10_000


@dataclass(frozen=True, slots=True)
class TablePlan:
    """One plan for one table.

    The rows of a plan are made in chunks, which begin at multiples of ``chunk``. The contents of a chunk follow from the seed and
    its number alone, so that any part of a plan can be made again.

    :param number: the index of the plan
    :param limit: the number of its rows; None for no end
    :param rate: the number of rows per second; None for as many as possible
    :param chunk: the number of rows that are made at a time
    :param seed: the seed of the random numbers
    :param schema: the schema of the changes that are made
    :param makers: the maker of each column
    """

    number: int
    limit: int | None
    rate: int | None
    chunk: int
    seed: int
    schema: pa.Schema
    makers: tuple[Maker, ...]

    def rows(self, chunk: int) -> pa.Table:
        """Make the rows of the chunk with a number, as inserts."""
        first = chunk * self.chunk
        size = self.chunk if self.limit is None else min(self.chunk, self.limit - first)
        numbers = np.arange(first, first + size, dtype=np.int64)
        columns = []
        for place, maker in enumerate(self.makers):
            random = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(self.number, place, chunk)))
            columns.append(maker.make(numbers, random))
        return pa.Table.from_arrays([*columns, pa.array(np.full(size, int(Op.INSERT), np.int8))], schema=self.schema)


def plans_for(options: DatagenOptions, schema: RelationSchema, seed: int) -> list[TablePlan]:
    """Return the plans of a connector.

    :param options: the options of the connector
    :param schema: the table
    :param seed: the seed of the random numbers
    :raises PlanProblem: when one of them cannot be carried out; it says which part
    """
    return [_plan(plan, number, schema, seed, len(options.plan)) for number, plan in enumerate(options.plan)]


def _plan(options: PlanOptions, number: int, schema: RelationSchema, seed: int, plans: int) -> TablePlan:
    where = f"plan {number}: " if plans > 1 else ""
    try:
        settings = settings_by_name(options.fields, schema.column_names, f"table {schema.name!r}")
        makers = tuple(
            maker_of(column.type, settings.get(column.name, FieldOptions()), f"column {column.name!r}", seed + place)
            for place, column in enumerate(schema.columns)
        )
    except PlanProblem as problem:
        raise PlanProblem(f"{where}{problem}") from problem
    chunk = options.worker_chunk_size or min(options.rate or _LARGEST_CHUNK, _LARGEST_CHUNK)
    return TablePlan(number, options.limit, options.rate, chunk, seed, changes_schema(schema), makers)


def size_in_bytes(columns: Sequence[pa.ChunkedArray]) -> int:
    """Return the approximate size of values: texts and binary values by their length, all others eight bytes each."""
    return sum(_size(chunk) for column in columns for chunk in column.chunks)


def _size(values: pa.Array) -> int:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pc.sum(pc.binary_length(values)).as_py() or 0
    if pa.types.is_map(kind):
        begin, end = values.offsets[0].as_py(), values.offsets[-1].as_py()
        return _size(values.keys.slice(begin, end - begin)) + _size(values.items.slice(begin, end - begin))
    if pa.types.is_struct(kind):
        return sum(_size(values.field(place)) for place in range(kind.num_fields))
    return _size(values.flatten()) if pa.types.is_list(kind) else 8 * len(values)
