"""Rows of state at rest: in memory and in a database they are the same, whatever is written, read and due."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_pipelines.streams.state.database import DatabaseRows, DatabaseSettings, StateDatabase, StateDatabaseError
from airflow_pipelines.streams.state.rows import (
    EVENT_DUE,
    EXPIRY,
    NEVER,
    PROCESSING_DUE,
    MemoryRows,
    contents_of,
    pack_row,
    times_of,
)

TIMES = st.integers(-(2**63), NEVER - 1) | st.integers(-5, 40) | st.just(NEVER)
KEYS = st.tuples(st.integers(0, 3), st.binary(max_size=2))
ROWS = st.none() | st.builds(pack_row, st.tuples(TIMES, TIMES, TIMES), st.binary(max_size=4))
WRITES = st.lists(st.dictionaries(KEYS, ROWS, max_size=6), max_size=8)
LOOKS = st.lists(st.tuples(st.sampled_from([EVENT_DUE, PROCESSING_DUE, EXPIRY]), st.integers(-10, 50) | TIMES, st.integers(1, 9)))


@contextmanager
def database(folder: Path | None = None) -> Iterator[StateDatabase]:
    with tempfile.TemporaryDirectory() as made:
        opened = StateDatabase(folder or Path(made) / "rows", DatabaseSettings(1 << 20, 1 << 20))
        try:
            yield opened
        finally:
            opened.close()


@given(st.tuples(TIMES, TIMES, TIMES), st.binary())
def test_a_row_has_its_times_and_its_contents(times: tuple[int, int, int], contents: bytes) -> None:
    row = pack_row(times, contents)
    assert (times_of(row), contents_of(row)) == (times, contents)


@settings(max_examples=60, deadline=None)
@given(WRITES, LOOKS)
def test_a_database_gives_what_memory_gives(writes: list[dict[Any, Any]], looks: list[tuple[int, int, int]]) -> None:
    with database() as opened:
        in_memory, on_disk = MemoryRows(), DatabaseRows(opened, 7, range(4))
        others = [DatabaseRows(opened, number, range(4)) for number in (6, 8)]
        for other in others:
            other.write({(group, b"x"): pack_row((1, 2, 3), b"other") for group in range(4)})
        looks = list(looks)
        for write in writes:
            for rows in (in_memory, on_disk):
                rows.write(write)
            if looks:
                _compare_due(in_memory, on_disk, *looks.pop())
        keys = [key for write in writes for key in write]
        assert on_disk.get_all(keys) == in_memory.get_all(keys) == [on_disk.get(key) for key in keys]
        assert list(on_disk.scan()) == list(in_memory.scan())
        for look in looks:
            _compare_due(in_memory, on_disk, *look)
        assert [len(list(other.scan())) for other in others] == [4, 4]


def _compare_due(in_memory: MemoryRows, on_disk: DatabaseRows, index: int, until: int, limit: int) -> None:
    assert on_disk.next_time(index) == in_memory.next_time(index)
    # With a limit the groups that come first are taken first, so everything is taken here.
    taken = []
    while some := on_disk.take_due(index, until, limit):
        assert len(some) <= limit
        taken += some
    assert sorted(set(taken)) == sorted(set(in_memory.take_due(index, until, 1_000)))
    assert on_disk.next_time(index) == in_memory.next_time(index)


def test_tasks_own_ranges_of_key_groups() -> None:
    with database() as opened:
        whole = DatabaseRows(opened, 1, range(8))
        whole.write({(group, b"k"): pack_row((group, NEVER, NEVER), b"") for group in range(8)})
        first, second = DatabaseRows(opened, 1, range(3)), DatabaseRows(opened, 1, range(3, 8))
        assert [key[0] for key, _ in first.scan()] == [0, 1, 2]
        assert [key[0] for key, _ in second.scan()] == [3, 4, 5, 6, 7]
        assert (first.next_time(EVENT_DUE), second.next_time(EVENT_DUE)) == (0, 3)
        assert second.take_due(EVENT_DUE, 4, 10) == [(3, b"k"), (4, b"k")]
        assert whole.take_due(EVENT_DUE, 9, 10) == [(group, b"k") for group in (0, 1, 2, 5, 6, 7)]


def test_a_checkpoint_is_the_database_of_that_moment(tmp_path: Path) -> None:
    with database() as opened:
        rows = DatabaseRows(opened, 1, range(4))
        rows.write({(0, b"a"): pack_row((5, NEVER, NEVER), b"1")})
        opened.checkpoint(tmp_path / "first")
        rows.write({(0, b"a"): None, (1, b"b"): pack_row((NEVER, NEVER, NEVER), b"2")})
        opened.checkpoint(tmp_path / "second")
    files = [{path.name for path in (tmp_path / name).iterdir() if path.suffix == ".sst"} for name in ("first", "second")]
    assert files[0] < files[1], "the file of the first is part of the second"
    for name, expected in (("first", [(0, b"a")]), ("second", [(1, b"b")])):
        with database(tmp_path / name) as again:
            rows = DatabaseRows(again, 1, range(4))
            assert [key for key, _ in rows.scan()] == expected
            assert rows.next_time(EVENT_DUE) == 5


def test_a_database_that_nobody_uses_has_no_files(tmp_path: Path) -> None:
    with database(tmp_path / "rows") as opened:
        rows = DatabaseRows(opened, 1, range(4))
        assert (rows.is_new(), rows.get((0, b"a")), rows.get_all([(0, b"a"), (1, b"b")])) == (True, None, [None, None])
        assert (list(rows.scan()), rows.next_time(EXPIRY), rows.take_due(EXPIRY, 9, 9)) == ([], None, [])
        rows.clear()
        assert not opened.is_open
        assert list(opened.sizes()) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["memory", "database"])
def test_what_changes_during_a_scan_does_not_show(kind: str) -> None:
    with database() as opened:
        rows = MemoryRows() if kind == "memory" else DatabaseRows(opened, 1, range(4))
        rows.write({(0, b"%d" % number): pack_row((NEVER, NEVER, NEVER), b"") for number in range(5)})
        seen = []
        for key, _ in rows.scan():
            seen.append(key)
            rows.write({key: None, (3, key[1]): pack_row((NEVER, NEVER, NEVER), b"")})
        assert len(seen) == 5


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_file_is_an_error_that_names_the_folder(tmp_path: Path, damage: str) -> None:
    with database(tmp_path / "rows") as opened:
        DatabaseRows(opened, 1, range(4)).write({(1, b"%d" % number): pack_row((NEVER,) * 3, b"x" * 100) for number in range(1000)})
        opened.checkpoint(tmp_path / "checkpoint")
    [file] = (tmp_path / "checkpoint").glob("*.sst")
    content = file.read_bytes()
    file.unlink()
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "changed":
        file.write_bytes(content[:50] + b"damaged" + content[57:])
    with database(tmp_path / "checkpoint") as opened:
        rows = DatabaseRows(opened, 1, range(4))
        for read in (lambda: list(rows.scan()), lambda: rows.get((1, b"0")), lambda: rows.get_all([(1, b"0"), (1, b"1")])):
            with pytest.raises(StateDatabaseError, match=f"written in {re.escape(str(tmp_path))}"):
                read()
