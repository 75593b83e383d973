from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.engine.batch import WEIGHT
from airflow_pipelines.engine.normalise import Normaliser
from airflow_pipelines.program.relations import Table
from airflow_pipelines.rows.changes import GIVEN, OP, Op, TableChanges
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType

COLUMNS = (
    Column("id", ColumnType("BIGINT", nullable=False)),
    Column("name", ColumnType("VARCHAR")),
    Column("x", ColumnType("DOUBLE")),
)
SCHEMA = RelationSchema("t", COLUMNS)
Row = tuple[Any, ...]


def _normaliser(stored: Sequence[Row], key: tuple[str, ...] | None, *, append_only: bool = False) -> Normaliser:
    """A normaliser over a table that holds ``stored``."""

    def lookup(wanted: Any, names: Sequence[str]) -> Any:
        looked_for = [tuple(row[name] for name in names) for row in wanted.to_pylist()]
        rows = [dict(zip(("id", "name", "x"), row, strict=True)) for row in stored]
        counts: dict[str, dict[str, Any]] = {}
        for row in rows:
            if tuple(row[name] for name in names) in looked_for:
                counts.setdefault(repr(row), {**row, WEIGHT: 0})[WEIGHT] += 1
        schema = pa.schema([*(field.with_nullable(True) for field in SCHEMA.arrow), pa.field(WEIGHT, pa.int64())])
        return pa.Table.from_pylist(list(counts.values()), schema=schema)

    return Normaliser(Table("t", COLUMNS, primary_key=key, append_only=append_only), SCHEMA, lookup)


def _changes(*operations: tuple[Op, Row] | tuple[Op, Row, list[str]]) -> TableChanges:
    rows = [dict(zip(("id", "name", "x"), operation[1], strict=True)) for operation in operations]
    for row, operation in zip(rows, operations, strict=True):
        row[OP] = int(operation[0])
        row[GIVEN] = operation[2] if len(operation) > 2 else None
    schema = pa.schema(
        [*(f.with_nullable(True) for f in SCHEMA.arrow), pa.field(OP, pa.int8()), pa.field(GIVEN, pa.list_(pa.string()))]
    )
    return TableChanges("t", pa.Table.from_pylist(rows, schema=schema))


def _delta(normaliser: Normaliser, *changes: TableChanges) -> list[Row]:
    return sorted((tuple(row.values()) for row in normaliser.delta(changes).to_pylist()), key=repr)


def test_an_upsert_takes_the_old_row_away() -> None:
    normaliser = _normaliser([(1, "a", 1.0), (2, "b", 2.0)], ("id",))
    assert _delta(normaliser, _changes((Op.INSERT, (1, "c", 1.0)))) == [(1, "a", 1.0, -1), (1, "c", 1.0, 1)]


def test_an_upsert_that_changes_nothing_gives_nothing() -> None:
    assert _delta(_normaliser([(1, "a", 1.0)], ("id",)), _changes((Op.INSERT, (1, "a", 1.0)))) == []


def test_the_last_operation_per_key_wins_in_arrival_order() -> None:
    normaliser = _normaliser([(1, "a", 1.0)], ("id",))
    first = _changes((Op.INSERT, (1, "b", None)), (Op.DELETE, (1, None, None)), (Op.INSERT, (2, "x", None)))
    second = _changes((Op.INSERT, (1, "c", None)), (Op.DELETE, (2, None, None)), (Op.DELETE, (9, None, None)))
    assert _delta(normaliser, first, second) == [(1, "a", 1.0, -1), (1, "c", None, 1)]
    assert normaliser.rejected == []


def test_updates_set_only_what_is_given_and_pile_up() -> None:
    normaliser = _normaliser([(1, "a", 1.0)], ("id",))
    changes = _changes(
        (Op.UPDATE, (1, "b", None), ["name"]),
        (Op.UPDATE, (1, None, 7.0), ["x"]),
        (Op.UPDATE, (5, "nobody", None), ["name"]),
        (Op.INSERT, (6, "new", 0.5)),
        (Op.UPDATE, (6, None, None), ["name"]),
    )
    assert _delta(normaliser, changes) == [(1, "a", 1.0, -1), (1, "b", 7.0, 1), (6, None, 0.5, 1)]
    assert normaliser.rejected == []


def test_updates_of_a_row_that_was_just_deleted_are_ignored() -> None:
    normaliser = _normaliser([(1, "a", 1.0)], ("id",))
    changes = _changes((Op.UPDATE, (1, "b", None), ["name"]), (Op.DELETE, (1, None, None)), (Op.UPDATE, (1, "c", None), ["name"]))
    assert _delta(normaliser, changes) == [(1, "a", 1.0, -1)]
    assert normaliser.rejected == []


def test_deletes_that_find_no_row_are_told_with_the_change_and_the_row_they_came_in() -> None:
    normaliser = _normaliser([(1, "a", 1.0)], None)
    changes = [
        _changes((Op.DELETE, (1, "a", 1.0)), (Op.INSERT, (3, "c", None)), (Op.DELETE, (1, "a", 1.0))),
        _changes(),
        _changes((Op.INSERT, (2, "d", None)), (Op.DELETE, (8, "e", None)), (Op.DELETE, (9, "f", None))),
    ]
    assert _delta(normaliser, *changes) == [(1, "a", 1.0, -1), (2, "d", None, 1), (3, "c", None, 1)]
    (rejected,) = normaliser.rejected
    assert rejected.count == 3
    assert [(part.change, part.count, part.first_row, part.first["name"]) for part in rejected.parts] == [
        (0, 1, 2, "a"),
        (2, 2, 1, "e"),
    ]


def test_without_a_key_insertions_ask_for_nothing_and_keep_duplicates() -> None:
    normaliser = _normaliser([], None)
    normaliser.lookup = lambda *_: pytest.fail("insertions need no lookup")
    assert _delta(normaliser, _changes((Op.INSERT, (1, "a", None)), (Op.INSERT, (1, "a", None)))) == [(1, "a", None, 1)] * 2


def test_deleting_more_copies_than_there_are_is_reported_not_done() -> None:
    normaliser = _normaliser([(1, "a", None), (1, "a", None)], None)
    delta = _delta(normaliser, _changes(*[(Op.DELETE, (1, "a", None))] * 3, (Op.DELETE, (2, "z", None))))
    assert delta == [(1, "a", None, -2)]
    (rejected,) = normaliser.rejected
    assert (rejected.count, rejected.reason) == (2, "the deleted row is not in the table")
    assert rejected.sample[1] == {"id": 2, "name": "z", "x": None}


def test_a_row_inserted_and_deleted_in_one_step_was_never_there() -> None:
    normaliser = _normaliser([], None)
    assert _delta(normaliser, _changes((Op.INSERT, (1, "a", None)), (Op.DELETE, (1, "a", None)))) == []
    assert normaliser.rejected == []


def test_nulls_where_they_must_not_be_are_reported() -> None:
    normaliser = _normaliser([], None)
    assert _delta(normaliser, _changes((Op.INSERT, (None, "a", None)), (Op.INSERT, (1, None, None)))) == [(1, None, None, 1)]
    assert normaliser.rejected[0].reason == "a NOT NULL column is NULL"


def test_an_append_only_table_reports_deletes() -> None:
    normaliser = _normaliser([(1, "a", None)], None, append_only=True)
    assert _delta(normaliser, _changes((Op.DELETE, (1, "a", None)), (Op.INSERT, (2, "b", None)))) == [(2, "b", None, 1)]
    assert normaliser.rejected[0].reason == "the table is append-only"


def test_a_row_of_an_append_only_table_takes_the_place_of_the_one_with_its_key() -> None:
    normaliser = _normaliser([(1, "a", None)], ("id",), append_only=True)
    assert _delta(normaliser, _changes((Op.INSERT, (1, "b", None)), (Op.DELETE, (1, None, None)))) == [
        (1, "a", None, -1),
        (1, "b", None, 1),
    ]
    assert [rejected.reason for rejected in normaliser.rejected] == ["the table is append-only"]


def test_a_table_without_a_key_refuses_updates() -> None:
    with pytest.raises(ValueError, match="no primary key"):
        _normaliser([], None).delta([_changes((Op.UPDATE, (1, "a", None), ["name"]))])


def test_negative_zero_and_nan_are_ordinary_values() -> None:
    normaliser = _normaliser([(1, "a", 0.0)], None)
    assert _delta(normaliser, _changes((Op.DELETE, (1, "a", -0.0)))) == [(1, "a", 0.0, -1)]
    assert str(_delta(_normaliser([], None), _changes((Op.INSERT, (1, "a", -0.0))))[0][2]) == "0.0"


class Watched:
    """A table that counts the columns that are gone through to name its columns or to make another table of it."""

    def __init__(self, table: pa.Table, counted: list[int]) -> None:
        self._table = table
        self._counted = counted

    def __getattr__(self, name: str) -> Any:
        if name == "column_names":
            self._counted[0] += self._table.num_columns
        return getattr(self._table, name)

    def __getitem__(self, name: str) -> Any:
        return self._table[name]

    def set_column(self, *args: Any) -> Watched:
        self._counted[0] += self._table.num_columns
        return Watched(self._table.set_column(*args), self._counted)


@pytest.mark.parametrize("count", [50, 200])
def test_the_work_follows_the_number_of_columns(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = tuple(Column(f"c{number}", ColumnType("BIGINT")) for number in range(count))
    rows = pa.table({**{column.name: pa.array([1, 2]) for column in columns}, OP: pa.array([1, 1], pa.int8())})
    counted = [0]
    numbered = Normaliser._numbered
    monkeypatch.setattr(Normaliser, "_numbered", lambda self, tables: Watched(numbered(self, tables), counted))
    normaliser = Normaliser(Table("t", columns), RelationSchema("t", columns), lambda *_: rows)
    delta = normaliser.delta([TableChanges("t", Watched(rows, counted))])  # type: ignore[arg-type]
    assert delta.num_rows == 2
    assert counted[0] <= 5 * (count + 3)
