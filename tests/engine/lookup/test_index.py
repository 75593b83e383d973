"""Rows are found in batches by the values of some columns."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.engine.execution.ways import Budget, TooMuch
from airflow_pipelines.engine.lookup.index import FileIndex, MemoryIndex, can_look_up, hash_rows
from airflow_pipelines.engine.storage.batch_store import BatchStore

ROWS = pa.table(
    {
        "i": pa.array([1, 2, None, 2, 5], pa.int32()),
        "s": pa.array(["a", "b", "", None, "a"]),
        "f": pa.array([0.0, -0.0, float("nan"), None, 1.5]),
        "d": pa.array([Decimal("1.10"), None, Decimal("-3.00"), Decimal("1.10"), Decimal("0.00")], pa.decimal128(20, 2)),
        "t": pa.array([datetime.date(2025, 1, day) for day in (1, 2, 3, 3, 1)]),
        "n": pa.array([0, 1, 2, 3, 4]),
    }
)


@pytest.fixture
def store(tmp_path: Path) -> BatchStore:
    return BatchStore(tmp_path)


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ({"i": [2, 7]}, [1, 3]),
        ({"i": [None]}, [2]),
        ({"s": ["a", ""]}, [0, 2, 4]),
        ({"s": [None, "c"]}, [3]),
        ({"f": [0.0]}, [0, 1]),
        ({"f": [float("nan"), None]}, [2, 3]),
        ({"d": [Decimal("1.10")]}, [0, 3]),
        ({"t": [datetime.date(2025, 1, 3)]}, [2, 3]),
        ({"i": [2, 1], "s": [None, "b"]}, [3]),
        ({"i": []}, []),
    ],
)
def test_rows_are_found_in_files_and_in_memory(store: BatchStore, wanted: dict[str, list[Any]], places: list[int]) -> None:
    asked = pa.table({name: pa.array(values, ROWS[name].type) for name, values in wanted.items()})
    (file,) = store.write(ROWS)
    for found in (
        FileIndex(store).find(file, asked, ["n", "s"], Budget(10)),
        MemoryIndex().find(1, ROWS, asked, ["n", "s"], Budget(10)),
    ):
        assert found["n"].to_pylist() == places
        assert found["s"].to_pylist() == ROWS["s"].take(pa.array(places, pa.int64())).to_pylist()


def test_a_second_index_reads_what_the_first_one_made(store: BatchStore) -> None:
    (file,) = store.write(ROWS)
    asked = pa.table({"i": pa.array([5], pa.int32())})
    for _ in range(2):
        assert FileIndex(store).find(file, asked, ["s"], Budget(10))["s"].to_pylist() == ["a"]


def test_too_many_rows_are_left_to_a_scan(store: BatchStore) -> None:
    (file,) = store.write(ROWS)
    asked = pa.table({"i": pa.array([2], pa.int32())})
    with pytest.raises(TooMuch):
        FileIndex(store).find(file, asked, ["n"], Budget(1))
    budget = Budget(3)
    assert FileIndex(store).find(file, asked, ["n"], budget).num_rows == 2
    assert budget.left == 1


def test_companions_go_with_their_files(store: BatchStore) -> None:
    (file,) = store.write(ROWS)
    index = FileIndex(store)
    index.find(file, pa.table({"i": pa.array([5], pa.int32())}), ["s"], Budget(10))
    companions = store.folder / ".lookup"
    assert len(list(companions.iterdir())) == 3
    index.forget()
    assert len(list(companions.iterdir())) == 3
    store.garbage_collect(())
    index.forget()
    assert list(companions.iterdir()) == []


def test_a_damaged_companion_is_made_again(store: BatchStore, caplog: pytest.LogCaptureFixture) -> None:
    (file,) = store.write(ROWS)
    asked = pa.table({"i": pa.array([5, 2], pa.int32())})
    expected = FileIndex(store).find(file, asked, ["s", "i"], Budget(10))
    for number, path in enumerate(sorted((store.folder / ".lookup").iterdir()), 1):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 4
        path.write_bytes(content)
        assert FileIndex(store).find(file, asked, ["s", "i"], Budget(10)) == expected
        assert len(caplog.records) == number
        assert f"{path} is damaged and is made again" in caplog.text
    assert FileIndex(store).find(file, asked, ["s", "i"], Budget(10)) == expected
    assert len(caplog.records) == 3


def test_companions_of_an_earlier_release_are_made_again(store: BatchStore) -> None:
    (file,) = store.write(ROWS)
    asked = pa.table({"i": pa.array([5], pa.int32())})
    FileIndex(store).find(file, asked, ["s"], Budget(10))
    folder = store.folder / ".lookup"
    for path in list(folder.iterdir()):
        path.rename(path.with_suffix(""))
    assert FileIndex(store).find(file, asked, ["s"], Budget(10))["s"].to_pylist() == ["a"]
    assert all(path.name.count(".") == 2 for path in folder.iterdir())


def test_hashes_depend_on_values_and_their_order_not_on_pieces() -> None:
    texts = pa.chunked_array([["ab", None], ["", "ba"], ["ab"]])
    hashes = hash_rows(pa.table({"s": texts}))
    assert hashes[0] == hashes[4]
    assert len(set(hashes.tolist())) == 4
    sliced = hash_rows(pa.table({"s": pa.array(["zz", "ab", None, "", "ba", "ab"]).slice(1)}))
    assert sliced.tolist() == hashes.tolist()


def test_nested_types_have_no_index() -> None:
    assert not can_look_up(pa.list_(pa.int32()))
    assert can_look_up(pa.string())
