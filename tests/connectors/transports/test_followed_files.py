"""Files and folders that grow while they are read: whole lines, new files, and files that were written anew."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.files import file_set_input, store
from tests.connectors.transports.file_readers import (
    TWO_ROWS,
    file_input,
    ids,
    packed,
    read_all,
    without_marks,
)


@pytest.mark.rest
def test_following_takes_whole_lines_and_new_files(tmp_path: Path) -> None:
    first = tmp_path / "a.csv"
    first.write_text("1,a,1,\n2,b")
    source = file_input(tmp_path, follow=True)
    chunk = source.read(10, 0)
    assert chunk is not None
    assert (ids(chunk), chunk.end_of_input) == ([1], False)
    assert source.read(10, 0) is None
    with first.open("a") as file:
        file.write(",1,\n3,c,1,\n")
    (tmp_path / "b.csv").write_text("4,d,1,\n")
    position = chunk.position
    chunks = [source.read(10, 1), source.read(10, 1)]
    assert ids(*chunks) == [2, 3, 4]
    assert source.read(10, 0) is None
    source.close()
    again = file_input(tmp_path, follow=True, position=position)
    assert ids(again.read(10, 1), again.read(10, 1)) == [2, 3, 4]
    assert again.read(10, 0) is None
    (tmp_path / "b.csv").unlink()
    with first.open("a") as file:
        file.write("5,e,1,\n")
    assert ids(again.read(10, 1)) == [5]
    again.close()


def test_following_waits_for_a_whole_parquet_file(tmp_path: Path) -> None:
    source = file_input(tmp_path, "parquet", follow=True)
    done = tmp_path / "outside"
    pq.write_table(pa.table({"student_id": [1, 2]}), done)
    data = done.read_bytes()
    (tmp_path / "a.parquet").write_bytes(data[:-10])
    done.unlink()
    assert source.read(10, 0) is None
    (tmp_path / "a.parquet").write_bytes(data)
    assert ids(source.read(10, 1)) == [1, 2]
    assert source.read(10, 0) is None
    source.close()


def test_a_file_that_shrank_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("1,a,1,\n2,a,1,\n")
    source = file_input(path, follow=True)
    assert ids(source.read(10, 1)) == [1, 2]
    path.write_text("1,a,1,\n")
    with pytest.raises(ConnectorFailure, match="a file must only grow"):
        source.read(10, 1)
    source.close()


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_file_that_was_written_anew_is_an_error(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"g.csv{ending}"

    def write(text: str) -> None:
        path.write_bytes(packed("gzip", text) if ending else text.encode())

    write("1,a,1,\n2,a,1,\n")
    source = file_input(path)
    first = source.read(1, 1)
    assert ids(first) == [1]
    assert first is not None
    source.close()
    write("1,a,1,\n2,b,1,\n3,b,1,\n")
    assert ids(*read_all(file_input(path, position=first.position))) == [2, 3]
    write("101,a,1,\n102,a,1,\n103,a,1,\n")
    again = file_input(path, position=first.position)
    with pytest.raises(ConnectorFailure, match="was written anew: what stands before byte 7 is not what was read there"):
        again.read(10, 1)
    again.close()


def test_a_followed_file_that_was_written_anew_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("1,a,1,\n2,a,1,\n")
    source = file_input(path, follow=True)
    assert ids(source.read(10, 1)) == [1, 2]
    with path.open("a") as file:
        file.write("3,a,1,\n")
    chunk = source.read(10, 1)
    assert chunk is not None
    path.write_text("".join(f"{number},a,1,\n" for number in range(100, 110)))
    with pytest.raises(ConnectorFailure, match="was written anew"):
        source.read(10, 1)
    source.close()
    again = file_input(path, follow=True, position=chunk.position)
    with pytest.raises(ConnectorFailure, match="was written anew"):
        again.read(10, 1)
    again.close()


def test_a_followed_file_that_was_written_anew_with_its_length_is_noticed_when_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("1,a,1,\n2,a,1,\n")
    source = file_input(path, follow=True)
    assert ids(source.read(10, 1)) == [1, 2]
    path.write_text("3,a,1,\n4,a,1,\n")
    assert source.read(10, 0) is None
    with path.open("a") as file:
        file.write("5,a,1,\n")
    with pytest.raises(ConnectorFailure, match="was written anew"):
        source.read(10, 1)
    source.close()


@pytest.mark.rest
def test_objects_of_object_stores_never_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    monkeypatch.setattr(store, "_LOCAL", frozenset())
    monkeypatch.setattr(store, "_OBJECT_STORES", frozenset({"memory"}))
    monkeypatch.setattr(file_set_input, "_REMOTE_POLL_S", 0.01)
    memory = fsspec.filesystem("memory")
    memory.pipe("/growing-test/a.csv", b"1,a,1,\n2,b,1,")
    source = file_input("memory://growing-test", follow=True)
    assert ids(source.read(10, 5)) == [1, 2], "a line without an end is one"
    assert source.read(10, 0) is None
    memory.pipe("/growing-test/a.csv", b"1,a,1,\n2,b,1,\n3,b,1,\n")
    memory.pipe("/growing-test/b.csv", b"4,a,1,\n")
    assert ids(source.read(10, 5)) == [4]
    assert source.read(10, 0.1) is None
    source.close()


@pytest.mark.rest("True")
@pytest.mark.parametrize("is_reopened", [False, True])
def test_a_place_of_an_earlier_release_grows_on(tmp_path: Path, is_reopened: bool) -> None:
    path = tmp_path / "g.csv"
    path.write_text("".join(f"{number},name{number:04},1,\n" for number in range(50)))
    source = file_input(path, follow=True)
    first = source.read(100, 1)
    assert first is not None
    source.close()
    position = without_marks(first.position)
    assert position != first.position
    source = file_input(path, follow=True, position=position)
    for number in range(50, 53):
        with path.open("a") as file:
            file.write(f"{number},b,1,\n")
        chunk = source.read(100, 1)
        assert ids(chunk) == [number]
        if is_reopened and chunk is not None:
            source.close()
            source = file_input(path, follow=True, position=chunk.position)
    source.close()


def test_close_wakes_a_reader(tmp_path: Path) -> None:
    source = file_input(tmp_path, follow=True)
    results: list[Any] = []
    reader = threading.Thread(target=lambda: results.append(source.read(10, 30)))
    reader.start()
    source.close()
    source.close()
    reader.join(20)
    assert results == [None]


def test_following_waits_for_the_rest_of_a_compressed_file(tmp_path: Path) -> None:
    data = packed("gzip", "".join(f"{n},{os.urandom(20).hex()},1,\n" for n in range(5000)))
    path = tmp_path / "a.csv.gz"
    path.write_bytes(data[:-2000])
    source = file_input(tmp_path, follow=True)
    chunk = source.read(100_000, 5)
    assert chunk is not None
    assert 0 < chunk.records < 5000
    assert chunk.num_parse_errors == 0
    assert source.read(100_000, 0) is None
    again = file_input(tmp_path, follow=True, position=chunk.position)
    path.write_bytes(data)
    for reader in (source, again):
        rest = reader.read(100_000, 5)
        assert ids(chunk, rest) == list(range(5000))
        assert reader.read(10, 0) is None
        reader.close()


@pytest.mark.rest
def test_positions_of_followed_folders_stay_small(tmp_path: Path) -> None:
    for number in range(1500):
        pq.write_table(TWO_ROWS, tmp_path / f"part-{number:05}-of-a-table.parquet")
    source = file_input(tmp_path, "parquet", follow=True)
    found: list[int] = []
    position: dict[str, Any] = {}
    while len(found) < 3000:
        chunk = source.read(10_000, 5)
        assert chunk is not None
        found += ids(chunk)
        position = chunk.position
    source.close()
    assert len(json.dumps(position)) < 20_000
    # A new file is found whatever its name is, and no other one is read again.
    pq.write_table(pa.table({"student_id": [77]}), tmp_path / "aaa.parquet")
    again = file_input(tmp_path, "parquet", follow=True, position=position)
    assert ids(again.read(10, 5)) == [77]
    assert again.read(10, 0) is None
    again.close()


def test_many_followed_texts_that_grow(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number:04}.csv").write_text(f"{number},a,1,\n")
    source = file_input(tmp_path, follow=True)
    chunk = source.read(10_000, 5)
    found = ids(chunk)
    while len(found) < 300:
        chunk = source.read(10_000, 5)
        found += ids(chunk)
    assert chunk is not None
    assert len(json.dumps(chunk.position)) < 5000
    source.close()
    with (tmp_path / "0123.csv").open("a") as file:
        file.write("1000,b,1,\n")
    again = file_input(tmp_path, follow=True, position=chunk.position)
    assert ids(again.read(10, 5)) == [1000]
    assert again.read(10, 0) is None
    again.close()
