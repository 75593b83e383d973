"""What a table may take."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.engine.allowed_changes import (
    NO_DELETES,
    NO_UPDATES,
    NotATableError,
    Refused,
    allowed_changes,
    changed_table,
)
from airflow_pipelines.program.relations import Table
from airflow_pipelines.rows.changes import OP, Op, TableChanges

OPERATIONS = [Op.INSERT, Op.DELETE, Op.UPDATE, Op.INSERT, Op.UPDATE]
KEYED = Table("keyed", (), primary_key=("x",))
BAG = Table("bag", ())
LOG = Table("log", (), append_only=True)


@pytest.mark.parametrize(
    ("table", "left", "refused"),
    [
        (KEYED, [0, 1, 2, 3, 4], ()),
        (BAG, [0, 1, 3], (Refused(NO_UPDATES, 2),)),
        (LOG, [0, 3], (Refused(NO_DELETES, 1), Refused(NO_DELETES, 2))),
    ],
)
def test_operations_that_a_table_does_not_take_are_left_out(table: Table, left: list[int], refused: tuple[Refused, ...]) -> None:
    rows = pa.table({"x": range(5), OP: pa.array([int(one) for one in OPERATIONS], pa.int8())})
    changes, found = allowed_changes(TableChanges(table.name, rows), table)
    assert changes is not None
    assert (changes.rows["x"].to_pylist(), found) == (left, refused)


def test_nothing_is_left_of_changes_that_are_all_refused() -> None:
    rows = pa.table({"x": [1], OP: pa.array([int(Op.DELETE)], pa.int8())})
    assert allowed_changes(TableChanges("log", rows), LOG) == (None, (Refused(NO_DELETES, 1),))


def test_only_tables_can_be_changed() -> None:
    program: Any = SimpleNamespace(tables={"log": LOG, "bag": BAG}, views={"v": None}, hidden_relations=frozenset())
    assert changed_table(program, "bag") is BAG
    for name, is_view in (("v", True), ("nowhere", False)):
        with pytest.raises(NotATableError) as error:
            changed_table(program, name)
        assert (error.value.is_view, error.value.tables) == (is_view, ("bag", "log"))
