"""Writing views and their changes to Delta tables, as others read them."""

from __future__ import annotations

import datetime as dt
import random
import threading
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_pipelines.connectors.base import CommitsSteps, ConnectorFailure, Rewindable, TransientConnectorFailure
from airflow_pipelines.connectors.common_options import OnError
from airflow_pipelines.connectors.left_out import LeftOutRows
from airflow_pipelines.connectors.transports.delta_table.output import DeltaTableOutput
from airflow_pipelines.connectors.transports.delta_table.output_options import DeltaOutputOptions
from airflow_pipelines.engine.storage.fence import Fence, OvertakenError
from airflow_pipelines.rows.types import ColumnType
from tests.connectors.relations import NESTED, SCALARS, col, relation
from tests.connectors.transports.delta_table.tables import PEOPLE, changes, counted, merged, output, rows, version
from tests.tiers import examples

pytestmark = pytest.mark.core


def test_change_log_says_what_happened_in_order(tmp_path: Path) -> None:
    sink = output(tmp_path / "log")
    assert sink.write(1, changes((1, "a", 1), (2, "b", 2)))[0] == 3
    assert sink.write(2, changes((1, "a", -1), (1, "c", 1)))[0] == 2
    table = DeltaTable(str(tmp_path / "log")).to_pyarrow_table().sort_by("__feldera_ts").to_pylist()
    assert [(row["id"], row["name"], row["__feldera_op"]) for row in table] == [
        (1, "a", "i"),
        (2, "b", "i"),
        (2, "b", "i"),
        (1, "a", "d"),
        (1, "c", "i"),
    ]
    assert len({row["__feldera_ts"] for row in table}) == 5


def test_change_log_with_an_index_has_one_row_for_an_update(tmp_path: Path) -> None:
    sink = output(tmp_path / "log", key=("id",), op_column="op", ts_column="seq")
    sink.write(1, changes((1, "a", 1), (2, "b", 1), key=("id",)))
    sink.write(2, changes((1, "a", -1), (1, "c", 1), (2, "b", -1), (3, "d", 1), key=("id",)))
    table = DeltaTable(str(tmp_path / "log")).to_pyarrow_table().sort_by("seq").to_pylist()
    assert [(row["id"], row["name"], row["op"]) for row in table[2:]] == [(1, "c", "u"), (2, "b", "d"), (3, "d", "i")]


def _constrained(path: Path, *more: pa.Field) -> None:
    """A table that does not take all rows."""
    fields = [pa.field("id", pa.int64()), pa.field("name", pa.string(), nullable=False), *more]
    table = DeltaTable.create(str(path), pa.schema(fields))
    table.alter.add_constraint({"few": "id < 100"})
    table.alter.add_constraint({"plain": "name != 'odd'"})


BAD = [(100, "b", 1), (2, None, 1), (3, "odd", 1)]
REASONS = [
    "row (id = 100): it violates constraint 'few' of the table: id < 100",
    "row (id = 2): column 'name' must not be NULL in the table",
    "row (id = 3): it violates constraint 'plain' of the table: name != 'odd'",
]


@pytest.mark.parametrize("is_log", [True, False], ids=["log", "merged"])
def test_rows_that_the_table_does_not_take_are_left_out(tmp_path: Path, is_log: bool) -> None:
    log = [pa.field("__feldera_op", pa.string(), nullable=False), pa.field("__feldera_ts", pa.int64())] if is_log else []
    _constrained(tmp_path / "t", *log)
    left_out = LeftOutRows(("id",))
    sink = (output if is_log else merged)(tmp_path / "t", key=("id",), left_out=left_out)
    assert sink.write(1, changes((1, "a", 1), *BAD, (4, "d", 1), key=("id",)))[0] == 2
    errors, count = left_out.take()
    assert count == 3
    assert sorted(error.message for error in errors) == sorted(REASONS)
    assert [row[:2] for row in rows(tmp_path / "t")] == [(1, "a"), (4, "d")]
    # Of an update the old row goes; the next step with the key is as any other.
    sink.write(2, changes((1, "a", -1), (1, "odd", 1), (3, "odd", -1), (3, "c", 1), key=("id",)))
    assert left_out.take()[1] == 1
    sink.write(3, changes((1, "odd", -1), (1, "e", 1), key=("id",)))
    assert left_out.take()[1] == 0
    if is_log:
        found = DeltaTable(str(tmp_path / "t")).to_pyarrow_table().sort_by("__feldera_ts").to_pylist()
        assert [(row["__feldera_op"], row["id"], row["name"]) for row in found[2:]] == [("d", 1, "a"), ("u", 3, "c"), ("u", 1, "e")]
    else:
        assert rows(tmp_path / "t") == [(1, "e"), (3, "c"), (4, "d")]
    sink.write(4, changes((5, "odd", 1), key=("id",)))
    assert left_out.take()[1] == 1
    assert sink.committed_step() == 4


def test_the_first_row_that_the_table_does_not_take_may_end_the_output(tmp_path: Path) -> None:
    _constrained(tmp_path / "t")
    sink = merged(tmp_path / "t", left_out=LeftOutRows((), OnError.STOP))
    with pytest.raises(ConnectorFailure, match=r'row \(id = 100, name = "b"\): it violates constraint'):
        sink.write(1, changes((1, "a", 1), (100, "b", 1)))
    assert rows(tmp_path / "t") == []


KEPT = {"checkpoint_interval": 3, "log_retention_duration": "interval 6 hours", "enable_expired_log_cleanup": False}
PROPERTIES = {
    "delta.checkpointInterval": "3",
    "delta.logRetentionDuration": "interval 6 hours",
    "delta.enableExpiredLogCleanup": "false",
}


def test_a_new_table_keeps_its_log_as_the_options_say(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sink = output(tmp_path / "new", **KEPT)
    assert DeltaTable(str(tmp_path / "new")).metadata().configuration == PROPERTIES
    for step in range(6):
        sink.write(step + 1, changes((step, "a", 1)))
    assert len(list((tmp_path / "new" / "_delta_log").glob("*.checkpoint.parquet"))) == 2
    output(tmp_path / "plain").write(1, changes((1, "a", 1)))
    assert DeltaTable(str(tmp_path / "plain")).metadata().configuration == {}
    assert not caplog.records
    other = output(tmp_path / "plain", writer="another/v.out", **KEPT)
    assert "keeps its own delta.checkpointInterval, delta.logRetentionDuration, delta.enableExpiredLogCleanup" in caplog.text
    other.write(1, changes((2, "b", 1)))
    assert DeltaTable(str(tmp_path / "plain")).metadata().configuration == {}
    emptied = output(tmp_path / "plain", writer="a third/v.out", mode="truncate", **KEPT)
    emptied.write(1, changes((3, "c", 1)))
    assert DeltaTable(str(tmp_path / "plain")).metadata().configuration == PROPERTIES
    assert [row[:2] for row in rows(tmp_path / "plain")] == [(3, "c")]


def test_a_table_without_checkpoints_of_its_log(tmp_path: Path) -> None:
    sink = output(tmp_path / "t", checkpoint_interval=0)
    for step in range(12):
        sink.write(step + 1, changes((step, "a", 1)))
    assert not list((tmp_path / "t" / "_delta_log").glob("*.checkpoint.parquet"))


@pytest.mark.parametrize("text", ["30 days", "interval many days", "interval 1 year", ""])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="a duration is a text such as 'interval 30 days'"):
        DeltaOutputOptions.model_validate({"uri": "/t", "log_retention_duration": text})


def test_change_logs_of_earlier_releases_keep_the_names_of_their_columns(tmp_path: Path) -> None:
    former = {"op_column": "__op", "ts_column": "__ts"}
    output(tmp_path / "log", **former).write(1, changes((1, "a", 1)))
    output(tmp_path / "log", resumed=True).write(2, changes((2, "b", 1)))
    output(tmp_path / "log", writer="another/v.out").write(1, changes((3, "c", 1)))
    table = DeltaTable(str(tmp_path / "log")).to_pyarrow_table().sort_by("__ts")
    assert table.column_names == ["id", "name", "__op", "__ts"]
    assert [row["id"] for row in table.to_pylist()] == [1, 2, 3]
    output(tmp_path / "log", writer="a third/v.out", mode="truncate")
    assert DeltaTable(str(tmp_path / "log")).to_pyarrow_table().column_names == ["id", "name", "__feldera_op", "__feldera_ts"]


def test_order_goes_on_after_a_restart_even_when_the_clock_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output(tmp_path / "log").write(1, changes((1, "a", 1)))
    monkeypatch.setattr("time.time_ns", lambda: 0)
    output(tmp_path / "log", resumed=True).write(2, changes((2, "b", 1)))
    first, second = (row[3] for row in rows(tmp_path / "log"))
    assert second == first + 1


def test_merged_by_index_follows_the_view(tmp_path: Path) -> None:
    sink = merged(tmp_path / "t", key=("id",))
    sink.write(1, changes((1, "a", 1), (2, "b", 1), (None, "n", 1), key=("id",)))
    sink.write(2, changes((1, "a", -1), (1, "c", 1), (2, "b", -1), (3, None, 1), (None, "n", -1), (None, "m", 1), key=("id",)))
    assert rows(tmp_path / "t") == sorted([(1, "c"), (3, None), (None, "m")], key=repr)
    sink.write(3, changes((None, "m", -1), (1, "c", -1), (3, None, -1), key=("id",)))
    assert rows(tmp_path / "t") == []


def test_merged_into_rows_that_were_there_replaces_those_of_the_same_key(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1, 9], "name": ["old", "other"]}))
    sink = merged(tmp_path / "t", key=("id",))
    sink.write(1, changes((1, "new", 1), (2, "b", 1), key=("id",)))
    assert rows(tmp_path / "t") == [(1, "new"), (2, "b"), (9, "other")]


def test_merged_refuses_keys_that_are_not_unique(tmp_path: Path) -> None:
    sink = merged(tmp_path / "t", key=("id",))
    sink.write(1, changes((1, "a", 1), key=("id",)))
    with pytest.raises(ConnectorFailure, match=r"more than one row of the view has the same key \(id\)"):
        sink.write(2, changes((1, "a", -1), (1, "b", 1), (1, "c", 1), key=("id",)))
    assert rows(tmp_path / "t") == [(1, "a")]
    # A key that comes twice in different steps is noticed when one of its rows changes.
    sink.write(3, changes((1, "b", 1), key=("id",)))
    with pytest.raises(ConnectorFailure, match="not unique in the view"):
        sink.write(4, changes((1, "b", -1), (1, "z", 1), key=("id",)))


def test_merged_without_an_index_keeps_multiplicities(tmp_path: Path) -> None:
    sink = merged(tmp_path / "t")
    sink.write(1, changes((1, "a", 3), (2, None, 2), (None, None, 1)))
    sink.write(2, changes((1, "a", -2), (2, None, -2), (3, "c", 2)))
    assert counted(tmp_path / "t") == Counter({(1, "a"): 1, (3, "c"): 2, (None, None): 1})
    sink.write(3, changes((None, None, -1), (3, "c", -1)))
    assert counted(tmp_path / "t") == Counter({(1, "a"): 1, (3, "c"): 1})


@settings(max_examples=examples("DELTA_EXAMPLES", 25), deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.sampled_from(["a", "b", None])), st.integers(0, 3), max_size=5
        ),
        min_size=1,
        max_size=6,
    )
)
def test_merged_without_an_index_is_any_view(tmp_path_factory: pytest.TempPathFactory, states: list[dict[Any, int]]) -> None:
    path = tmp_path_factory.mktemp("any") / "t"
    sink = merged(path)
    before: Counter[Any] = Counter()
    for step, state in enumerate(states, start=1):
        after = +Counter(state)
        delta = {row: after[row] - before[row] for row in {*before, *after} if after[row] != before[row]}
        if delta:
            sink.write(step, changes(*((*row, weight) for row, weight in delta.items())))
        before = after
        assert counted(path) == after


@settings(max_examples=examples("DELTA_EXAMPLES", 25), deadline=None)
@given(
    st.lists(st.dictionaries(st.one_of(st.none(), st.integers(0, 4)), st.sampled_from(["a", "b", None]), max_size=5), max_size=6)
)
def test_merged_by_index_is_any_view(tmp_path_factory: pytest.TempPathFactory, states: list[dict[Any, Any]]) -> None:
    path = tmp_path_factory.mktemp("any") / "t"
    sink = merged(path, key=("id",))
    before: dict[Any, Any] = {}
    for step, after in enumerate(states, start=1):
        gone = [(*row, -1) for row in before.items() if row not in after.items()]
        new = [(*row, 1) for row in after.items() if row not in before.items()]
        if gone or new:
            sink.write(step, changes(*gone, *new, key=("id",)))
        before = after
        assert counted(path) == Counter(after.items())


def test_values_that_compare_in_their_own_way(tmp_path: Path) -> None:
    floats = relation(col("f", "DOUBLE"), col("b", "VARBINARY"), name="v")
    sink = merged(tmp_path / "t", of=floats)
    nan, infinite = float("nan"), float("inf")
    sink.write(1, changes((nan, b"", 2), (infinite, b"\xff", 1), (0.0, None, 1), of=floats))
    sink.write(2, changes((nan, b"", -1), (infinite, b"\xff", -1), (0.0, None, -1), of=floats))
    assert [repr(row) for row in rows(tmp_path / "t")] == ["(nan, b'')"]


def test_all_types(tmp_path: Path) -> None:
    every = relation(*SCALARS.columns, *NESTED.columns, name="v")
    variant = {"value": b"\x0c\x07", "metadata": b"\x01\x00\x00"}
    row = (
        True, 1, 2, 3, 4, 1.5, 2.5, Decimal("123456789.123"), "s", "abc", dt.date(2024, 2, 29), dt.time(23, 59, 59, 5),
        dt.datetime(2024, 1, 2, 3, 4, 5, 6), dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
        "6b2a1c1e-0000-4000-8000-000000000000", b"\x00\xff", [1, None], [(1, Decimal("1.25"))],
        {"x": dt.date(1, 1, 1), "y": ["a", None]}, variant,
    )  # fmt: skip
    nothing = tuple(None if name != "i64" else 0 for name in every.column_names)
    sink = output(tmp_path / "t", of=every)
    sink.write(1, changes((*row, 1), (*nothing, 1), of=every))
    table = DeltaTable(str(tmp_path / "t"))
    read = {each["i64"]: each for each in table.to_pyarrow_table().to_pylist()}
    expected = dict(zip(every.column_names, row, strict=True))
    expected |= {"t": "23:59:59.000005", "v": "7"}
    assert {name: value for name, value in read[4].items() if not name.startswith("__")} == expected
    assert {name for name, value in read[0].items() if value is not None} == {"i64", "__feldera_op", "__feldera_ts"}
    kinds = {field.name: field.type.to_json() for field in table.schema().fields}
    assert kinds["ts"] == '"timestamp_ntz"'
    assert kinds["tz"] == '"timestamp"'
    assert kinds["dec"] == '"decimal(12,3)"'


def test_times_and_variants_inside_other_values(tmp_path: Path) -> None:
    clock, variant = ColumnType("TIME"), ColumnType("VARIANT")
    deep = relation(
        col("a", "ARRAY", component=clock),
        col("m", "MAP", key=ColumnType("VARCHAR", False), value=variant),
        col("s", "STRUCT", fields=(("t", clock), ("v", ColumnType("ARRAY", component=variant)))),
        name="v",
    )
    value = {"value": b"\x0c\x07", "metadata": b"\x01\x00\x00"}
    noon = dt.time(12)
    sink = output(tmp_path / "t", of=deep)
    sink.write(1, changes(([noon, None], [("k", value)], {"t": noon, "v": [value, None]}, 1), (None, None, None, 1), of=deep))
    first, second = sorted(rows(tmp_path / "t"), key=lambda row: row[0] is None)
    assert first[:3] == (["12:00:00.000000", None], [("k", "7")], {"t": "12:00:00.000000", "v": ["7", None]})
    assert second[:3] == (None, None, None)


def test_truncate_empties_the_table_at_the_first_start_only(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"other": [1, 2]}))
    sink = output(tmp_path / "t", mode="truncate")
    assert rows(tmp_path / "t") == []
    sink.write(1, changes((1, "a", 1)))
    sink.close()
    output(tmp_path / "t", mode="truncate", resumed=True)
    assert [row[:3] for row in rows(tmp_path / "t")] == [(1, "a", "i")]


def test_append_leaves_the_rows_that_are_there(tmp_path: Path) -> None:
    output(tmp_path / "t").write(1, changes((1, "a", 1)))
    # Another life of the pipeline, whose steps begin anew.
    sink = output(tmp_path / "t")
    assert sink.committed_step() is None
    sink.write(1, changes((2, "b", 1)))
    assert [row[0] for row in rows(tmp_path / "t")] == [1, 2]


def test_error_if_exists(tmp_path: Path) -> None:
    first = output(tmp_path / "t", mode="error_if_exists")
    # A start that was broken off before anything was written.
    first = output(tmp_path / "t", mode="error_if_exists")
    first.write(1, changes((1, "a", 1)))
    with pytest.raises(ConnectorFailure, match=r"there is a table at .* already"):
        output(tmp_path / "t", mode="error_if_exists")


def test_a_table_with_other_columns_is_refused_with_all_reasons(tmp_path: Path) -> None:
    other = pa.schema([pa.field("id", pa.string()), pa.field("NAME", pa.string()), pa.field("must", pa.int64(), nullable=False)])
    DeltaTable.create(str(tmp_path / "t"), other)
    with pytest.raises(ConnectorFailure) as caught:
        merged(tmp_path / "t", key=("id",))
    text = str(caught.value)
    assert "'id' is long in the view and string in the table" in text
    assert "'name' is written 'NAME' in the table" in text
    assert "'must' of the table must not be NULL" in text
    assert version(tmp_path / "t") == 0


def test_more_columns_in_the_table_stay_null(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "t"), pa.table({"name": ["x"], "more": [1], "id": [7]}))
    sink = merged(tmp_path / "t", key=("id",))
    sink.write(1, changes((7, "y", 1), (8, "z", 1), key=("id",)))
    assert sorted(DeltaTable(str(tmp_path / "t")).to_pyarrow_table().to_pylist(), key=lambda row: row["id"]) == [
        {"name": "y", "more": 1, "id": 7},
        {"name": "z", "more": None, "id": 8},
    ]


def test_a_table_that_is_gone_or_was_replaced_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectorFailure, match="is gone"):
        output(tmp_path / "t", resumed=True)
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [1], "name": ["a"], "__feldera_op": ["i"], "__feldera_ts": [1]}))
    with pytest.raises(ConnectorFailure, match="not the one that this pipeline wrote"):
        output(tmp_path / "t", resumed=True)


def test_a_step_is_there_once_however_often_it_comes(tmp_path: Path) -> None:
    sink = output(tmp_path / "t")
    assert isinstance(sink, CommitsSteps)
    assert isinstance(sink, Rewindable)
    sink.write(4, changes((1, "a", 1)))
    again = output(tmp_path / "t", resumed=True)
    assert again.committed_step() == 4
    assert again.write(4, changes((1, "a", 1))) == (0, 0)
    assert again.write(5, changes((2, "b", 1)))[0] == 1
    assert [row[0] for row in rows(tmp_path / "t")] == [1, 2]


@pytest.mark.processes
@pytest.mark.parametrize("compacted", [False, True])
def test_rewind_restores_what_a_step_left(tmp_path: Path, compacted: bool) -> None:
    sink = merged(tmp_path / "t", key=("id",))
    for step in range(1, 6):
        sink.write(step, changes(*([(1, f"n{step - 1}", -1)] if step > 1 else []), (1, f"n{step}", 1), key=("id",)))
    if compacted:
        DeltaTable(str(tmp_path / "t")).optimize.compact()
    again = merged(tmp_path / "t", key=("id",), resumed=True)
    again.rewind(3)
    assert rows(tmp_path / "t") == [(1, "n3")]
    assert again.committed_step() == 3
    # Other steps, cut in another way, and taken back once more.
    again.write(4, changes((1, "n3", -1), (1, "m4", 1), key=("id",)))
    again.rewind(4)
    assert rows(tmp_path / "t") == [(1, "m4")]
    again.rewind(2)
    assert rows(tmp_path / "t") == [(1, "n2")]
    again.rewind(0)
    assert rows(tmp_path / "t") == []


@pytest.mark.processes
def test_rewind_with_rows_of_others(tmp_path: Path) -> None:
    log = output(tmp_path / "log")
    table = merged(tmp_path / "t", key=("id",))
    for sink, key in ((log, ()), (table, ("id",))):
        sink.write(1, changes((1, "a", 1), key=key))
        sink.write(2, changes((2, "b", 1), key=key))
    write_deltalake(str(tmp_path / "t"), pa.table({"id": [9], "name": ["x"]}), mode="append")
    with pytest.raises(ConnectorFailure, match="others have written the table since: WRITE in version"):
        table.rewind(1)
    assert (9, "x") in rows(tmp_path / "t")
    others = pa.table({"id": [9], "name": ["x"], "__feldera_op": ["i"], "__feldera_ts": [0]})
    write_deltalake(str(tmp_path / "log"), others, mode="append")
    log.rewind(1)
    # The steps come again, and a change log may have them twice.
    assert log.write(2, changes((2, "b", 1)))[0] == 1
    assert [row[0] for row in rows(tmp_path / "log")] == [1, 2, 2, 9]


@pytest.mark.processes
def test_rewind_after_vacuum_says_what_to_do(tmp_path: Path) -> None:
    sink = merged(tmp_path / "t", key=("id",))
    for step in range(1, 4):
        sink.write(step, changes(*([(1, f"n{step - 1}", -1)] if step > 1 else []), (1, f"n{step}", 1), key=("id",)))
    DeltaTable(str(tmp_path / "t")).vacuum(0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(ConnectorFailure, match=r"cannot be taken back: .*Write a new table"):
        sink.rewind(1)


def test_a_run_that_was_replaced_writes_nothing_more(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    storage.mkdir()
    old = output(tmp_path / "t", fence=Fence.take(storage, lambda: 0))
    old.write(1, changes((1, "a", 1)))
    new = output(tmp_path / "t", resumed=True, fence=Fence.take(storage, lambda: 0))
    with pytest.raises(OvertakenError):
        old.write(2, changes((2, "zombie", 1)))
    new.write(2, changes((2, "b", 1)))
    assert [row[:2] for row in rows(tmp_path / "t")] == [(1, "a"), (2, "b")]


def test_a_run_that_does_not_see_the_fence_is_kept_out_by_the_table(tmp_path: Path) -> None:
    class Unseen:
        def __init__(self, epoch: int) -> None:
            self.epoch = epoch

        def check(self) -> None:
            """Sees nothing: the file system shows old files."""

    old = output(tmp_path / "t", fence=Unseen(1))
    old.write(1, changes((1, "a", 1)))
    output(tmp_path / "t", resumed=True, fence=Unseen(2))
    with pytest.raises(ConnectorFailure, match="another run of the pipeline has opened the table"):
        old.write(2, changes((2, "zombie", 1)))
    assert [row[:2] for row in rows(tmp_path / "t")] == [(1, "a")]


@pytest.mark.rest
def test_writers_that_come_between_are_waited_for(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    sink = merged(path, key=("id",))
    sink.write(1, changes(*((n, "0", 1) for n in range(20)), key=("id",)))
    done = threading.Event()

    def others() -> None:
        while not done.is_set():
            with suppress(CommitFailedError):
                DeltaTable(path).optimize.compact()
                write_deltalake(path, pa.table({"id": [-1], "name": ["other"]}), mode="append")

    thread = threading.Thread(target=others)
    thread.start()
    generator = random.Random(1)
    values = dict.fromkeys(range(20), "0")
    try:
        for step in range(2, 22):
            chosen = generator.sample(range(20), 3)
            delta = [row for n in chosen for row in ((n, values[n], -1), (n, str(step), 1))]
            sink.write(step, changes(*delta, key=("id",)))
            values |= dict.fromkeys(chosen, str(step))
    finally:
        done.set()
        thread.join()
    assert {row for row in rows(path) if row[0] >= 0} == set(values.items())
    assert len([row for row in rows(path) if row[0] >= 0]) == 20


def test_partitions_of_a_new_table(tmp_path: Path) -> None:
    sink = merged(tmp_path / "t", key=("id",), partition_by=["name"])
    sink.write(1, changes((1, "a", 1), (2, "b", 1), key=("id",)))
    sink.write(2, changes((1, "a", -1), (1, "b", 1), key=("id",)))
    assert DeltaTable(str(tmp_path / "t")).metadata().partition_columns == ["name"]
    assert sorted(rows(tmp_path / "t")) == [(1, "b"), (2, "b")]


def test_names_that_need_quotes(tmp_path: Path) -> None:
    odd = relation(col('q"t', "BIGINT"), col("we ird", "VARCHAR"), col("UP.a", "BIGINT"), name="v")
    sink = merged(tmp_path / "t", of=odd, key=('q"t', "UP.a"))
    sink.write(1, changes((1, "a", 1, 1), of=odd, key=('q"t', "UP.a")))
    sink.write(2, changes((1, "a", 1, -1), (1, "b", 1, 1), of=odd, key=('q"t', "UP.a")))
    assert rows(tmp_path / "t") == [(1, "b", 1)]


def test_a_store_that_is_not_there_may_come_back() -> None:
    nowhere: dict[str, Any] = {
        "aws_endpoint": "http://127.0.0.1:9",
        "allow_http": True,
        "aws_access_key_id": "k",
        "aws_secret_access_key": "hidden-key",
    }
    with pytest.raises(TransientConnectorFailure) as caught:
        output("s3://bucket/t", region="us-east-1", max_retries=0, retry_timeout="1s", **nowhere)
    assert "127.0.0.1:9" in str(caught.value)
    assert "hidden-key" not in str(caught.value)


def test_not_open() -> None:
    from airflow_pipelines.connectors.transports.delta_table.output_options import DeltaOutputOptions

    sink = DeltaTableOutput(DeltaOutputOptions(uri="t"), PEOPLE, (), "w")
    with pytest.raises(ConnectorFailure, match="not open"):
        sink.write(1, changes((1, "a", 1)))
