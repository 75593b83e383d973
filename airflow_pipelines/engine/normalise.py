"""The normalisation of a table's changes into a delta: it applies keys and NOT NULL, and rejects deletions of missing rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_pipelines.engine.allowed_changes import refused_operations
from airflow_pipelines.engine.batch import WEIGHT
from airflow_pipelines.engine.lateness import late_rows
from airflow_pipelines.engine.values.canonical import in_canonical_form
from airflow_pipelines.program.relations import Table
from airflow_pipelines.rows.arrow import ArrowColumn
from airflow_pipelines.rows.changes import GIVEN, OP, Op, TableChanges
from airflow_pipelines.rows.schema import RelationSchema
from airflow_pipelines.rows.zsets import SEQUENCE, RowKey, can_group, consolidate, row_keys

SAMPLE = 10
"""The number of rejected rows of one kind that are kept as a sample."""

Lookup = Callable[[pa.Table, Sequence[str]], pa.Table]
"""A function from rows and column names to the stored rows that match in these columns, with weights, consolidated."""

_AT = "__at"
_ROW = "__row"
"""The name of the column with each row's number among all changes of its table in the step."""


@dataclass(frozen=True, slots=True)
class RejectedPart:
    """The rows rejected from one change: their number, and the first of them, by number and as a dictionary."""

    change: int
    """The number of the change among the table's changes of the step, from 0."""
    count: int
    first_row: int
    """The number of the first rejected row, from 0 within the change."""
    first: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rejected:
    """The rejected changes of a table: the reason, their number, a sample as dictionaries, and the changes that they came with."""

    table: str
    reason: str
    count: int
    sample: tuple[dict[str, Any], ...]
    parts: tuple[RejectedPart, ...] = ()


@dataclass(slots=True)
class Normaliser:
    """The conversion of one table's changes in one step to its delta.

    ``lookup`` finds stored rows. It is called only with rows that changes could affect, and never for inserts without a key.
    """

    table: Table
    schema: RelationSchema
    lookup: Lookup
    rejected: list[Rejected] = field(default_factory=list)
    waterlines: Mapping[str, str] = field(default_factory=dict)
    """The waterlines by column, as text. Rows below one are too late."""
    first_numbers: Sequence[int] | None = None
    """The number of each change's first row in arrival order, if the delta is to keep the order."""
    late: list[pa.Table] = field(default_factory=list)
    """The rows that were too late, with the table's columns."""
    _starts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """The number of each change's first row."""

    def delta(self, changes: Sequence[TableChanges]) -> pa.Table:
        """Return the delta, with weights. ``changes`` are in arrival order.

        :raises ValueError: if a table without a primary key gets an UPDATE
        """
        rows = self._canonicalise(self._numbered([self._make_uniform(change.rows) for change in changes]))
        if Op.DELETE in refused_operations(self.table):
            rows = self._reject(rows, pc.equal(rows[OP], int(Op.DELETE)), "the table is append-only")
        rows = self._reject(rows, self._find_missing(rows), "a NOT NULL column is NULL")
        if self.waterlines:
            rows = self._keep_on_time(rows)
        if self.table.primary_key is not None:
            return self._normalise_keyed(rows, list(self.table.primary_key))
        if pc.any(pc.equal(rows[OP], int(Op.UPDATE))).as_py():
            raise ValueError(f"table {self.table.name!r} has no primary key, so its rows cannot be updated")
        if self.first_numbers is not None:
            return self._in_order(rows, self.first_numbers)
        return self._apply_multiset(rows)

    @property
    def _names(self) -> list[str]:
        return list(self.schema.column_names)

    def _make_uniform(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the table's columns, in its order and types. Missing columns are NULL."""
        arrow = self.schema.arrow
        # Every access to a table's names creates all of them again.
        there = dict(zip(rows.column_names, rows.columns, strict=True))
        columns = []
        for column in arrow:
            values = there[column.name] if column.name in there else pa.nulls(rows.num_rows, column.type)
            columns.append(values if values.type == column.type else values.cast(column.type))
        given = there[GIVEN] if GIVEN in there else pa.nulls(rows.num_rows, pa.list_(pa.string()))
        return pa.table([*columns, rows[OP].cast(pa.int8()), given.cast(pa.list_(pa.string()))], names=[*arrow.names, OP, GIVEN])

    def _numbered(self, changes: Sequence[pa.Table]) -> pa.Table:
        sizes = np.array([0, *(change.num_rows for change in changes)])
        self._starts = sizes.cumsum()[:-1]
        rows = pa.concat_tables(changes)
        return rows.append_column(_ROW, pa.array(np.arange(rows.num_rows)))

    def _canonicalise(self, rows: pa.Table) -> pa.Table:
        """Return the rows with their values in canonical form, which all later code relies on."""
        # Build one table at the end: a new table for each column would copy all columns each time.
        count = len(self.schema.arrow)
        canonical = [in_canonical_form(column) for column in rows.columns[:count]]
        return pa.table([*canonical, *rows.columns[count:]], names=rows.column_names)

    def _find_missing(self, rows: pa.Table) -> ArrowColumn:
        """Return a mask of the rows that lack a required value: keys always, other NOT NULL columns when the row sets them."""
        keys = set(self.table.primary_key or ())
        bad = pa.array([False] * rows.num_rows) if rows.num_rows == 0 else pc.is_null(rows[OP])
        inserts = pc.equal(rows[OP], int(Op.INSERT))
        updates = pc.equal(rows[OP], int(Op.UPDATE))
        for column in self.schema.arrow:
            if column.nullable or rows[column.name].null_count == 0:
                continue
            absent = pc.is_null(rows[column.name])
            if column.name in keys:
                bad = pc.or_(bad, absent)
                continue
            bad = pc.or_(bad, pc.and_(absent, inserts))
            if pc.any(updates).as_py():
                sets = pa.array([column.name in (given or ()) for given in rows[GIVEN].to_pylist()])
                bad = pc.or_(bad, pc.and_(pc.and_(absent, updates), sets))
        return bad

    def _reject(self, rows: pa.Table, bad: ArrowColumn, reason: str) -> pa.Table:
        if rows.num_rows == 0 or not pc.any(bad).as_py():
            return rows
        out = rows.filter(bad)
        plain = out.select(self._names)
        sample = tuple(plain.slice(0, SAMPLE).to_pylist())
        parts = []
        numbers = out[_ROW].to_numpy()
        # An empty change starts at the same number as its successor; the last change that starts there has the row.
        changes = np.searchsorted(self._starts, numbers, side="right") - 1
        for change, at, count in zip(*np.unique(changes, return_index=True, return_counts=True), strict=True):
            first = plain.slice(int(at), 1).to_pylist()[0]
            parts.append(RejectedPart(int(change), int(count), int(numbers[at] - self._starts[change]), first))
        self.rejected.append(Rejected(self.table.name, reason, out.num_rows, sample, tuple(parts)))
        return rows.filter(pc.invert(bad))

    def _keep_on_time(self, rows: pa.Table) -> pa.Table:
        """Return the rows that are not too late.

        A DELETE by key need not have the other columns. Whether it is late is decided later, by the row that it deletes.
        """
        late = late_rows(rows, self.waterlines)
        if self.table.primary_key is not None:
            late = pc.and_(late, pc.not_equal(rows[OP], int(Op.DELETE)))
        return self._drop_late(rows, late)

    def _drop_late(self, rows: pa.Table, late: ArrowColumn) -> pa.Table:
        if not pc.any(late).as_py():
            return rows
        self.late.append(rows.filter(late).select(self._names))
        return rows.filter(pc.invert(late))

    def _drop_late_keys(self, rows: pa.Table, keys: list[str], versions: pa.Table) -> pa.Table:
        """Return the rows whose key has no late version among ``versions``.

        One late version makes all operations on the key late.
        """
        gone = late_rows(versions, self.waterlines)
        if not pc.any(gone).as_py():
            return rows
        late_keys = set(row_keys(versions.filter(gone).select(keys)))
        late = pa.array([key in late_keys for key in row_keys(rows.select(keys))], pa.bool_())
        return self._drop_late(rows, late)

    def _normalise_keyed(self, rows: pa.Table, keys: list[str]) -> pa.Table:
        """Return the delta of a table with a primary key. The last operation per key wins.

        UPDATEs are folded into the row that they find, and ignored if there is none.
        """
        if rows.num_rows == 0:
            return self._as_inserts(rows)
        touched = _find_distinct(rows.select(keys))
        old = self.lookup(touched, keys).select([*self._names, WEIGHT])
        if self.waterlines:
            kept = self._drop_late_keys(rows, keys, old)
            if pc.any(pc.equal(kept[OP], int(Op.UPDATE))).as_py():
                kept = self._drop_late_keys(kept, keys, self._fold(kept, keys, old))
            if kept.num_rows < rows.num_rows:
                rows = kept
                if rows.num_rows == 0:
                    return self._as_inserts(rows)
                alive = set(row_keys(rows.select(keys)))
                old = old.filter(pa.array([key in alive for key in row_keys(old.select(keys))], pa.bool_()))
        if pc.any(pc.equal(rows[OP], int(Op.UPDATE))).as_py():
            new = self._fold(rows, keys, old)
        else:
            last = _last_per_key(rows, keys)
            new = last.filter(pc.equal(last[OP], int(Op.INSERT))).select(self._names)
        gone = old.set_column(old.num_columns - 1, WEIGHT, pc.negate(old[WEIGHT]))
        if gone.num_rows == 0:
            return self._as_inserts(new)
        return consolidate(pa.concat_tables([gone.cast(self._arrow), self._as_inserts(new)]))

    @property
    def _arrow(self) -> pa.Schema:
        columns = [column.with_nullable(True) for column in self.schema.arrow]
        return pa.schema([*columns, pa.field(WEIGHT, pa.int64())])

    def _as_inserts(self, rows: pa.Table) -> pa.Table:
        """Return the rows with the weight 1."""
        weights = pa.array(np.ones(rows.num_rows, np.int64))
        columns = [rows[name] for name in self._names]
        return pa.table([*columns, weights], schema=self._arrow)

    def _fold(self, rows: pa.Table, keys: list[str], old: pa.Table) -> pa.Table:
        """Return the affected rows after applying all operations one by one."""
        current: dict[RowKey, dict[str, Any] | None] = {}
        for row in old.select(self._names).to_pylist():
            current[tuple(row[key] for key in keys)] = row
        for row in rows.drop_columns([_ROW]).to_pylist():
            key = tuple(row[name] for name in keys)
            operation, given = row.pop(OP), row.pop(GIVEN)
            if operation == Op.INSERT:
                current[key] = row
            elif operation == Op.DELETE:
                current[key] = None
            elif (before := current.get(key)) is not None:
                current[key] = {**before, **{name: row[name] for name in given or ()}}
        after = [row for row in current.values() if row is not None]
        schema = pa.schema([column.with_nullable(True) for column in self.schema.arrow])
        return pa.Table.from_pylist(after, schema=schema)

    def _in_order(self, rows: pa.Table, first_numbers: Sequence[int]) -> pa.Table:
        """Return the inserted rows with their sequence numbers in arrival order."""
        numbers = rows[_ROW].to_numpy()
        changes = np.searchsorted(self._starts, numbers, side="right") - 1
        sequence = np.asarray(first_numbers, np.int64)[changes] + numbers - self._starts[changes]
        delta = self._as_inserts(rows)
        return delta.add_column(delta.num_columns - 1, SEQUENCE, pa.array(sequence, pa.int64()))

    def _apply_multiset(self, rows: pa.Table) -> pa.Table:
        """Return the delta of a table without a primary key.

        An insert adds a copy, and a delete removes one. A delete that finds no copy is rejected.
        """
        deletes = pc.equal(rows[OP], int(Op.DELETE))
        if rows.num_rows == 0 or not pc.any(deletes).as_py():
            return self._as_inserts(rows)
        plain = rows.select(self._names)
        stored = self.lookup(_find_distinct(plain.filter(deletes)), self._names).select([*self._names, WEIGHT])
        there: dict[RowKey, int] = {}
        weights = stored[WEIGHT].to_pylist()
        for key, weight in zip(row_keys(stored.select(self._names)), weights, strict=True):
            there[key] = there.get(key, 0) + weight
        interesting = set(row_keys(plain.filter(deletes)))
        accepted = []
        # Only rows that some change deletes need counting; to find them, all rows are converted to comparable Python values.
        for key, operation in zip(row_keys(plain), rows[OP].to_pylist(), strict=True):
            if key in interesting:
                count = there.get(key, 0)
                if operation == Op.DELETE and count <= 0:
                    accepted.append(False)
                    continue
                there[key] = count + int(operation)
            accepted.append(True)
        rows = self._reject(rows, pc.invert(pa.array(accepted, pa.bool_())), "the deleted row is not in the table")
        signed = pa.table([*(rows[name] for name in self._names), rows[OP].cast(pa.int64())], schema=self._arrow)
        return consolidate(signed)


def _last_per_key(rows: pa.Table, keys: list[str]) -> pa.Table:
    numbered = rows.select(keys).append_column(_AT, pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(keys, use_threads=False).aggregate([(_AT, "max")])
    return rows.take(last[f"{_AT}_max"])


def _find_distinct(rows: pa.Table) -> pa.Table:
    if can_group(rows.schema):
        return rows.group_by(rows.column_names, use_threads=False).aggregate([])
    seen: dict[RowKey, int] = {}
    for at, key in enumerate(row_keys(rows)):
        seen.setdefault(key, at)
    return rows.take(pa.array(list(seen.values()), pa.int64()))
