"""An input of generated rows: as many and as fast as requested, and the same for the same seed."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from airflow_pipelines.connectors.base import ChunkInTransaction, InputChunk
from airflow_pipelines.connectors.definition import Declared, InputContext, InputDefinition
from airflow_pipelines.connectors.transports.datagen.makers import PlanProblem
from airflow_pipelines.connectors.transports.datagen.options import DatagenOptions
from airflow_pipelines.connectors.transports.datagen.plans import TablePlan, plans_for, size_in_bytes
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.changes import TableChanges
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.rows.schema import RelationSchema

_CATCHES_UP_S = 1.0
"""The maximum time, in seconds, that a plan makes up for after it has fallen behind its rate."""
_SEED_BITS = 64


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of one chunk of one plan."""

    plan: TablePlan
    chunk: int
    offset: int
    rows: int


class Datagen:
    """An input of generated rows.

    A position has the seed, the plan and its next row, so that a restart resumes with the row that would have come next.
    """

    def __init__(self, options: DatagenOptions, schema: RelationSchema) -> None:
        """Make an input that is not open yet.

        :param options: the options that say what to generate
        :param schema: the table that the rows are for
        """
        self._options = options
        self._schema = schema
        self._seed = 0
        self._plans: list[TablePlan] = []
        self._plan = 0
        self._row = 0
        self._due = 0.0
        self._in_transaction = 0
        """The number of rows of the open transaction. A transaction begins at a position, since positions move with commits."""
        self._kept: tuple[TablePlan, int, pa.Table] | None = None
        self._pool = ThreadPoolExecutor(options.workers, "datagen") if options.workers > 1 else None
        self._closed = threading.Event()

    def open(self, position: Position | None) -> None:
        """Set the next row to that of ``position``."""
        if position is not None:
            self._seed, self._plan, self._row = (int(position[name]) for name in ("seed", "plan", "row"))
        else:
            self._seed = secrets.randbits(_SEED_BITS) if self._options.seed is None else self._options.seed
        self._plans = plans_for(self._options, self._schema, self._seed)
        self._due = time.monotonic()

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the rows that are due, or None if there are none within ``timeout_s``."""
        if not self._wait(timeout_s):
            return None
        size = self._options.transaction_size
        parts = list(self._due_parts(min(max_records, size - self._in_transaction) if size else max_records))
        tables = list(map(self._make_rows, parts) if self._pool is None else self._pool.map(self._make_rows, parts))
        self._skip_finished()
        rows = pa.concat_tables(tables) if tables else None
        ended = self._plan == len(self._plans)
        return InputChunk(
            changes=None if rows is None else TableChanges(self._schema.name, rows),
            records=0 if rows is None else rows.num_rows,
            size_bytes=0 if rows is None else size_in_bytes(rows.columns[:-1]),
            position={"seed": self._seed, "plan": self._plan, "row": self._row},
            end_of_input=ended,
            transaction=self._place_in_transaction(0 if rows is None else rows.num_rows, ended=ended),
        )

    def close(self) -> None:
        """Stop making rows; a read in another thread then returns."""
        self._closed.set()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _place_in_transaction(self, rows: int, *, ended: bool) -> ChunkInTransaction | None:
        """Return the place of a chunk in the transaction that it belongs to."""
        self._in_transaction += rows
        if not self._options.transaction_size or not self._in_transaction:
            return None
        if ended or self._in_transaction >= self._options.transaction_size:
            self._in_transaction = 0
            return ChunkInTransaction.LAST
        return ChunkInTransaction.MORE

    def _wait(self, timeout_s: float) -> bool:
        """Wait until rows are due, at most ``timeout_s``. Return True if they are."""
        self._skip_finished()
        if self._plan == len(self._plans) or self._plans[self._plan].rate is None:
            return True
        wait = self._due - time.monotonic()
        if wait < -_CATCHES_UP_S:
            self._due = time.monotonic() - _CATCHES_UP_S
        if wait > 0:
            self._closed.wait(min(wait, timeout_s))
        return wait <= timeout_s and not self._closed.is_set()

    def _due_parts(self, most: int) -> Iterator[_Part]:
        """Yield the parts to make now: at most ``most`` rows of one plan, each part within one chunk."""
        if self._plan == len(self._plans):
            return
        plan, now = self._plans[self._plan], time.monotonic()
        while most > 0 and (plan.limit is None or self._row < plan.limit) and (plan.rate is None or self._due <= now):
            chunk, offset = divmod(self._row, plan.chunk)
            rows = min(plan.chunk - offset, most)
            if plan.limit is not None:
                rows = min(rows, plan.limit - self._row)
            yield _Part(plan, chunk, offset, rows)
            most -= rows
            self._row += rows
            if plan.rate is not None:
                self._due += rows / plan.rate

    def _make_rows(self, part: _Part) -> pa.Table:
        kept = self._kept
        if kept is not None and kept[0] is part.plan and kept[1] == part.chunk:
            table = kept[2]
        else:
            table = part.plan.rows(part.chunk)
            self._kept = (part.plan, part.chunk, table)
        return table.slice(part.offset, part.rows)

    def _skip_finished(self) -> None:
        """Go on to the next plan once all rows of this one have been made."""
        while self._plan < len(self._plans):
            limit = self._plans[self._plan].limit
            if limit is None or self._row < limit:
                return
            self._plan += 1
            self._row = 0
            self._due = time.monotonic()


def _open(options: DatagenOptions, context: InputContext) -> Datagen:
    return Datagen(options, context.schema)


def _check_start(options: DatagenOptions, declared: Declared) -> None:
    try:
        plans_for(options, declared.schema, seed=0)
    except PlanProblem as problem:
        raise InvalidOptionError(str(problem)) from problem


DATAGEN: Final = InputDefinition(name="datagen", options=DatagenOptions, open=_open, check_start=_check_start)
