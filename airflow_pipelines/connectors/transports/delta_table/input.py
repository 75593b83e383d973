"""An input that reads a Delta table: a version, the changes of later versions, or both."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Final

import pyarrow as pa
from deltalake.exceptions import DeltaError, TableNotFoundError

from airflow_pipelines.connectors.base import ChunkInTransaction, ConnectorFailure, CountedError, InputChunk, Lag
from airflow_pipelines.connectors.definition import InputContext
from airflow_pipelines.connectors.transports.delta_table.deletion_vectors import BrokenVectorError
from airflow_pipelines.connectors.transports.delta_table.failures import failure, in_words, is_missing
from airflow_pipelines.connectors.transports.delta_table.input_options import DeltaInputOptions, DeltaMode, TransactionMode
from airflow_pipelines.connectors.transports.delta_table.log import Commit
from airflow_pipelines.connectors.transports.delta_table.parts import (
    ChangesPart,
    FilePart,
    Ops,
    Part,
    parts_in_order,
    parts_of_commit,
)
from airflow_pipelines.connectors.transports.delta_table.pieces import DeltaPiece, PieceReadOptions, pieces_of_commit
from airflow_pipelines.connectors.transports.delta_table.row_condition import (
    PROBLEM,
    RowCondition,
    plan_condition,
    split_conditions,
)
from airflow_pipelines.connectors.transports.delta_table.source_table import SourceTable
from airflow_pipelines.engine.storage.connector_state import Position
from airflow_pipelines.rows.changes import OP, Op, TableChanges
from airflow_pipelines.rows.expressions.pushdown import (
    ConditionProblem,
    Expression,
    find_column,
    read_order,
)
from airflow_pipelines.rows.formats.parsed import Parsed, RecordError
from airflow_pipelines.rows.formats.tables import TableParser

logger = logging.getLogger(__name__)

_POLL_S: Final = 1.0
_MAX_KEPT_ERRORS: Final = 100
_COUNTED_COMMITS: Final = 100
"""The maximum number of unread commits that are read to measure the lag."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of an input in its table.

    :param version: the version that is, or was, read
    :param whole: True if all rows of the version are read, rather than its changes
    :param until: the newest version when the input began
    :param part: the number of its parts that are done
    :param row: the number of rows of the next part that are done
    :param done: True if all of the version is done
    :param mark: the mark that distinguishes the version from that of a table that was made again, as far as it is known
    """

    version: int
    whole: bool
    until: int
    part: int = 0
    row: int = 0
    done: bool = False
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class _Slice:
    """Some rows of a part.

    :param rows: the rows
    :param ops: the operations of the rows
    :param begin: the place of the first row
    :param after: the place after the last row
    :param ends_part: True if the part has no more rows
    """

    rows: pa.Table
    ops: Ops
    begin: _Place
    after: _Place
    ends_part: bool


class DeltaTableInput:
    """An input over a Delta table."""

    def __init__(self, options: DeltaInputOptions, context: InputContext) -> None:
        """Make an input that is not open yet.

        :param options: the options that say which table to read, and what of it
        :param context: the context of the connector
        """
        self._options = options
        self._context = context
        self._parser = TableParser(context.schema, context.now)
        self._pool: ThreadPoolExecutor | None = None
        self._ahead: deque[tuple[_Slice, Future[Parsed]]] = deque()
        self._table: SourceTable | None = None
        self._place = _Place(0, whole=False, until=0, done=True)
        self._slices: Iterator[_Slice] | None = None
        self._commits: dict[int, Commit] = {}
        self._records_left = 0
        self._lag: Lag | None = None
        self._next_look = 0.0
        self._closed = threading.Event()

    def open(self, position: Position | None) -> None:
        """Open the table, and seek to ``position``.

        :raises ConnectorFailure: when it cannot be read
        """
        with self._access("open"):
            table = self._table = SourceTable(self._options.uri, self._options.storage_options)
            self._place = self._find_beginning(table) if position is None else _Place(**position)
            if not (self._place.done and self._has_ended):
                self._check_version_read(table)
            self._check_columns(table)
            self._reading(table, whole=self._place.whole)
            self._plan_deletes(table)
        self._pool = ThreadPoolExecutor(self._options.num_parsers, thread_name_prefix=f"parser {self._context.endpoint}")

    def read(self, max_records: int, timeout_s: float) -> InputChunk | None:
        """Return the next rows, or None if there was nothing new within ``timeout_s``."""
        table, pool = self._table, self._pool
        if table is None or pool is None or self._closed.is_set():
            return None
        with self._access("read"):
            if self._place.done:
                if self._has_ended:
                    return self._chunk(None)
                if not self._go_on(table):
                    self._closed.wait(min(timeout_s, _POLL_S))
                    return None
            return self._next_chunk(table, pool, max_records)

    def lag(self) -> Lag | None:
        """Return the number of unread rows of the table, from its log, when the input last looked."""
        return self._lag

    def close(self) -> None:
        """Close the input; a read in another thread then returns."""
        self._closed.set()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _find_beginning(self, table: SourceTable) -> _Place:
        options = self._options
        version = table.newest
        if options.version is not None:
            table.check_version(options.version)
            version = options.version
        elif options.datetime is not None:
            version = table.version_at(options.datetime)
        until = table.newest if options.end_version is None else min(table.newest, options.end_version)
        return _Place(
            version,
            whole=options.has_snapshot,
            until=max(until, version),
            done=not options.has_snapshot,
            mark=table.mark(version),
        )

    def _check_version_read(self, table: SourceTable) -> None:
        """Check that the table has the version of the place, and remember its mark.

        :raises ConnectorFailure: when it is another table
        """
        place = self._place
        table.check_mark(place.version, place.mark)
        if place.done and place.mark is None:
            # A place of an earlier release has no mark.
            self._place = replace(place, mark=table.mark(place.version))

    def _check_columns(self, table: SourceTable) -> None:
        """Refuse a table that lacks columns that every row needs."""
        given = {name for name in table.schema.names if self._parser.takes(name)}
        places = {name.lower() for name in given}
        missing = [
            column.name
            for column in self._context.schema.columns
            if column.name.lower() not in places and not column.type.nullable and column.default is None
        ]
        if missing:
            raise ConnectorFailure(
                f"delta_table_input: the table at {self._options.uri} has no column for {', '.join(map(repr, missing))}, which "
                f"must not be NULL; its columns: {', '.join(table.schema.names)}. Add a DEFAULT, allow NULL, or read a table that "
                "has it."
            )

    def _reading(self, table: SourceTable, *, whole: bool) -> PieceReadOptions:
        texts = [self._options.filter, self._options.snapshot_filter if whole else None]
        while_reading, rest = split_conditions(filter(None, texts), table.schema)
        columns = tuple(name for name in table.schema.names if self._parser.takes(name))
        return PieceReadOptions(table.filesystem, table.schema, columns, while_reading, rest)

    def _plan_deletes(self, table: SourceTable) -> Expression | RowCondition | None:
        """Return the condition that deletes of a change log meet."""
        text = self._options.cdc_delete_filter
        return None if text is None else plan_condition(text, table.schema)

    @property
    def _has_ended(self) -> bool:
        """True if nothing follows once this place is done."""
        if self._options.mode is DeltaMode.SNAPSHOT:
            return True
        return self._options.end_version is not None and self._place.version >= self._options.end_version

    def _go_on(self, table: SourceTable) -> bool:
        """Go to the next version. Return False if there is none."""
        if self._place.version >= table.newest:
            if time.monotonic() < self._next_look:
                return False
            table.look()
            table.check_mark(self._place.version, self._place.mark)
            self._next_look = time.monotonic() + _POLL_S
        self._measure_lag(table)
        if self._place.version >= table.newest:
            return False
        self._commits.pop(self._place.version, None)
        version = self._place.version + 1
        self._place = _Place(version, whole=False, until=self._place.until, mark=self._commit(table, version).mark)
        self._slices = None
        return True

    def _measure_lag(self, table: SourceTable) -> None:
        unread = range(self._place.version + 1, table.newest + 1)
        if len(unread) > _COUNTED_COMMITS:
            oldest = self._commit(table, unread[0])
            self._lag = Lag(seconds=_age(oldest))
            return
        commits = [self._commit(table, version) for version in unread]
        seconds = _age(commits[0]) if commits else 0.0
        self._lag = Lag(sum(each.records for each in commits), sum(each.size_bytes for each in commits), seconds)

    def _commit(self, table: SourceTable, version: int) -> Commit:
        if version not in self._commits:
            self._commits[version] = table.commit(version)
        return self._commits[version]

    def _next_chunk(self, table: SourceTable, pool: ThreadPoolExecutor, max_records: int) -> InputChunk:
        if self._slices is None:
            self._slices = self._all_slices(self._parts(table), max_records)
        while len(self._ahead) < self._options.num_parsers and (next_slice := next(self._slices, None)) is not None:
            self._ahead.append((next_slice, pool.submit(self._parse, next_slice)))
        if not self._ahead:
            # The version has no rows for the table.
            self._place = replace(self._place, done=True)
            return self._chunk(None)
        taken, future = self._ahead.popleft()
        parsed = future.result()
        self._place = taken.after
        if self._place.whole:
            self._records_left = max(0, self._records_left - taken.rows.num_rows)
            self._lag = Lag(records=self._records_left)
        return self._chunk(parsed, taken)

    def _parts(self, table: SourceTable) -> list[Part]:
        """Return the parts of the version that are to be read."""
        place, options = self._place, self._options
        if not place.whole:
            # Columns may have been added since.
            table.forget_schema()
        reading = self._reading(table, whole=place.whole)
        if place.whole:
            pieces = [piece for piece in table.files(place.version) if reading.may_have(piece)]
            self._records_left = sum(piece.records or 0 for piece in pieces)
            if options.timestamp_column is not None:
                return parts_in_order(pieces, reading, find_column(options.timestamp_column, table.schema))
            return [FilePart(piece, reading) for piece in pieces]
        commit = self._commit(table, place.version)
        pieces = pieces_of_commit(commit, table.schema, table.deleted, lambda path: table.partition_before(place.version, path))
        if options.mode is DeltaMode.CDC:
            return [self._changes(table, pieces, reading)]
        return parts_of_commit(pieces, reading)

    def _changes(self, table: SourceTable, pieces: list[DeltaPiece], reading: PieceReadOptions) -> ChangesPart:
        order = [] if self._options.cdc_order_by is None else read_order(self._options.cdc_order_by)
        known = [(find_column(name, table.schema), direction) for name, direction in order]
        return ChangesPart(pieces, reading, known, self._plan_deletes(table))

    def _all_slices(self, parts: list[Part], max_records: int) -> Iterator[_Slice]:
        """Yield the rows from the place on, a chunk at a time. The place after the last one is marked as done."""
        before: _Slice | None = None
        for current in self._cut(parts, self._place, max_records):
            if before is not None:
                yield replace(before, ends_part=current.begin.part != before.begin.part)
            before = current
        if before is not None:
            yield replace(before, after=replace(before.after, done=True), ends_part=True)

    def _cut(self, parts: list[Part], place: _Place, max_records: int) -> Iterator[_Slice]:
        for number in range(place.part, len(parts)):
            skipped, row = (place.row, 0) if number == place.part else (0, 0)
            for rows, ops in parts[number].rows():
                first = max(0, skipped - row)
                for begin in range(first, rows.num_rows, max_records):
                    some = rows.slice(begin, max_records)
                    here = replace(place, part=number, row=row + begin)
                    after = replace(here, row=row + begin + some.num_rows)
                    yield _Slice(some, ops if isinstance(ops, Op) else ops.slice(begin, max_records), here, after, ends_part=False)
                row += rows.num_rows

    def _parse(self, taken: _Slice) -> Parsed:
        """Return the rows as changes of the table."""
        # Use a parser per call: a parser holds the time of its current batch, and several threads parse.
        parser = TableParser(self._context.schema, self._context.now)
        problems = taken.rows.column(PROBLEM) if PROBLEM in taken.rows.column_names else None
        if problems is not None and problems.null_count < len(problems):
            return self._parse_by_row(parser, taken, problems.to_pylist())
        parsed = parser.parse_sized(taken.rows, taken.begin.row, taken.rows.nbytes)
        if parsed.num_errors and not isinstance(taken.ops, Op):
            return self._parse_by_row(parser, taken)
        return parsed if parsed.changes is None else _with_ops(parsed, taken.ops)

    def _parse_by_row(self, parser: TableParser, taken: _Slice, problems: Sequence[str | None] = ()) -> Parsed:
        """Parse each row by itself: if some rows are malformed, the others are no longer at their index."""
        parts = []
        for row in range(taken.rows.num_rows):
            number = taken.begin.row + row
            if problems and (problem := problems[row]) is not None:
                parts.append(Parsed(None, 0, (RecordError(number, problem),), 1, 0, number + 1))
                continue
            ops = taken.ops if isinstance(taken.ops, Op) else taken.ops.slice(row, 1)
            parts.append(_with_ops(parser.parse_sized(taken.rows.slice(row, 1), number, 0), ops))
        tables = [part.changes.rows for part in parts if part.changes is not None]
        changes = TableChanges(self._context.schema.name, pa.concat_tables(tables)) if tables else None
        errors = tuple(error for part in parts for error in part.errors)
        return Parsed(changes, sum(part.records for part in parts), errors, len(errors), 0, taken.after.row)

    def _chunk(self, parsed: Parsed | None, taken: _Slice | None = None) -> InputChunk:
        errors = () if parsed is None else parsed.errors[-_MAX_KEPT_ERRORS:]
        return InputChunk(
            changes=None if parsed is None else parsed.changes,
            records=0 if parsed is None else parsed.records,
            size_bytes=0 if taken is None else taken.rows.nbytes,
            position=asdict(self._place),
            parse_errors=tuple(
                CountedError("parse", f"version {self._place.version}: {error.message}", error.index) for error in errors
            ),
            num_parse_errors=0 if parsed is None else parsed.num_errors,
            end_of_input=self._place.done and self._has_ended,
            transaction=self._transaction(taken),
        )

    def _transaction(self, taken: _Slice | None) -> ChunkInTransaction | None:
        """Return the place of a chunk in its transaction."""
        mode, place = self._options.transaction_mode, self._place
        if mode is TransactionMode.CATCHUP and place.version <= place.until:
            return ChunkInTransaction.LAST if place.done and place.version == place.until else ChunkInTransaction.MORE
        is_one = mode is TransactionMode.ALWAYS or (mode is TransactionMode.SNAPSHOT and place.whole)
        if taken is None or not is_one:
            return None
        # With a timestamp column, the rows that are sorted together form one transaction.
        in_order = place.whole and self._options.timestamp_column is not None
        ends = place.done or (in_order and taken.ends_part)
        return ChunkInTransaction.LAST if ends else ChunkInTransaction.MORE

    @contextmanager
    def _access(self, doing: str) -> Iterator[None]:
        """Turn errors of the table, its store or its files into those of a connector."""
        what = f"delta_table_input cannot {doing} {self._options.uri}"
        try:
            yield
        except ConnectorFailure:
            raise
        except TableNotFoundError as error:
            raise ConnectorFailure(f"{what}: there is no Delta table: {in_words(error)}. Check 'uri'.") from error
        except (ConditionProblem, BrokenVectorError) as error:
            raise ConnectorFailure(f"{what}: {error}") from error
        except (DeltaError, OSError, pa.ArrowException, ValueError) as error:
            if doing == "read" and is_missing(error) and self._table is not None:
                raise self._table.make_missing_file_failure(self._place.version, in_words(error)) from error
            if isinstance(error, pa.ArrowInvalid | pa.ArrowTypeError):
                raise ConnectorFailure(
                    f"{what}: version {self._place.version} does not have values of the types that the table has now "
                    f"({in_words(error)}): a column was changed. Load the table anew, into a connector with another name."
                ) from error
            raise failure(what, error) from error


def _with_ops(parsed: Parsed, ops: Ops) -> Parsed:
    if parsed.changes is None or ops is Op.INSERT:
        return parsed
    rows = parsed.changes.rows
    place = rows.schema.get_field_index(OP)
    column = pa.array([int(ops)], pa.int8()).take(pa.array([0] * rows.num_rows, pa.int32())) if isinstance(ops, Op) else ops
    return replace(parsed, changes=TableChanges(parsed.changes.table, rows.set_column(place, rows.schema.field(place), column)))


def _age(commit: Commit) -> float:
    return max(0.0, time.time() - commit.timestamp / 1000)
