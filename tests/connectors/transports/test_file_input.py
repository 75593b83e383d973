"""Reading files: one, many, growing ones, from any position, and what goes wrong."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.connectors.base import ConnectorFailure, InputChunk, InputTransport
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.registry import open_input
from airflow_pipelines.connectors.transports import readers
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.references import NO_REFERENCES
from tests.connectors.relations import GRADES


def file_input(
    path: Path | str, format_name: str = "csv", *, follow: bool = False, position: Any = None, **config: Any
) -> InputTransport:
    buffer_size = config.pop("buffer_size_bytes", None)
    transport = {"path": str(path), "follow": follow} | ({"buffer_size_bytes": buffer_size} if buffer_size else {})
    source = open_input(
        Connector("grades", "c", ConnectorDirection.INPUT, "file_input", transport, format_name, config),
        GRADES,
        NO_REFERENCES,
        PipelineReference("0190-1", "p"),
    )
    source.open(None if position is None else json.loads(json.dumps(position)))
    return source


def read_all(source: InputTransport, max_records: int = 1_000_000) -> list[InputChunk]:
    chunks = []
    while not chunks or not chunks[-1].end_of_input:
        chunk = source.read(max_records, 1)
        assert chunk is not None
        assert chunk.records <= max_records
        chunks.append(chunk)
    source.close()
    return chunks


def ids(*chunks: InputChunk | None) -> list[int]:
    return [row["student_id"] for chunk in chunks if chunk and chunk.changes for row in chunk.changes.rows.to_pylist()]


def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_bytes(b"\xef\xbb\xbf1,a,1,\r\nx,a,1,\r\n\r\n3,a,1,")
    (chunk,) = read_all(file_input(path))
    assert (ids(chunk), chunk.records, chunk.num_parse_errors, chunk.end_of_input) == ([1, 3], 2, 1, True)
    assert chunk.parse_errors[0].message.startswith("grades.csv: line 2: column 'student_id'")
    assert chunk.position == {"done": ["grades.csv"], "files": {}}
    assert sum(c.size_bytes for c in read_all(file_input(path))) == path.stat().st_size - 3


@pytest.mark.parametrize("name", ["empty", "newlines"])
def test_a_file_without_rows(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("" if name == "empty" else "\n\n")
    chunks = read_all(file_input(path))
    assert (ids(*chunks), chunks[-1].end_of_input) == ([], True)


@pytest.mark.parametrize("format_name", ["csv", "json", "parquet"])
@pytest.mark.parametrize("max_records", [1, 7, 1000])
def test_reading_goes_on_exactly_from_every_position(tmp_path: Path, format_name: str, max_records: int) -> None:
    config: dict[str, Any] = {}
    for part in range(2):
        numbers = range(part * 20, part * 20 + 20)
        path = tmp_path / f"part-{part}"
        if format_name == "csv":
            config = {"headers": True}
            path.write_text("class,student_id,class_date,grade\n" + "".join(f'"a\n{n}",{n},,{n}\n' for n in numbers))
        elif format_name == "json":
            config = {"update_format": "raw"}
            path.write_text(
                "".join(f'{{"student_id": {n},\n "class": "x"}}\n' if n % 3 else f'{{"student_id": {n}}}\n' for n in numbers)
            )
        else:
            pq.write_table(pa.table({"student_id": list(numbers)}), path, row_group_size=6)
    (tmp_path / "_SUCCESS").write_text("not data")
    (tmp_path / ".hidden").write_text("not data")
    chunks = read_all(file_input(tmp_path, format_name, **config), max_records)
    assert ids(*chunks) == list(range(40))
    assert sum(chunk.num_parse_errors for chunk in chunks) == 0
    for number, chunk in enumerate(chunks):
        resumed = read_all(file_input(tmp_path, format_name, position=chunk.position, **config), 5)
        assert ids(*chunks[: number + 1], *resumed) == list(range(40))


def test_error_lines_are_those_of_the_file_after_a_resume(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("".join(f"{n},a,1,\n" for n in range(10)) + "bad,a,1,\n")
    source = file_input(path)
    first = source.read(4, 1)
    assert first is not None
    chunks = read_all(file_input(path, position=first.position))
    assert chunks[-1].parse_errors[0].index == 11


def test_glob(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "c.txt"):
        (tmp_path / name).write_text(f"{ord(name[0])},x,1,\n")
    assert ids(*read_all(file_input(tmp_path / "*.csv"))) == [97, 98]
    with pytest.raises(ConnectorFailure, match=r"no file matches .*\.xml"):
        file_input(tmp_path / "*.xml")


def test_url_of_another_file_system() -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/connector-test/g.csv", b"1,a,1,\n2,b,2,\n")
    assert ids(*read_all(file_input("memory://connector-test/g.csv"))) == [1, 2]
    with pytest.raises(ConnectorFailure, match="cannot use path"):
        file_input("nosuchscheme://x/y")


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConnectorFailure) as failure:
        file_input("data/none.csv")
    assert str(tmp_path / "data" / "none.csv") in str(failure.value)
    assert "Check the path" in str(failure.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("1,a,1,\n")
    path.chmod(0)
    with pytest.raises(ConnectorFailure, match="may not be read"):
        file_input(path)


def test_a_finished_file_may_be_gone_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("1,a,1,\n")
    (chunk,) = read_all(file_input(path))
    path.unlink()
    assert ids(*read_all(file_input(path, position=chunk.position))) == []


def test_small_buffers_and_long_records(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("".join(f'{n},"{"x" * 500}\n{n}",1,\n' for n in range(400)))
    chunks = read_all(file_input(path, buffer_size_bytes=10))
    assert ids(*chunks) == list(range(400))
    assert len(chunks) > 1


def test_a_record_too_long_for_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "MAX_RECORD_BYTES", 200_000)
    path = tmp_path / "g.json"
    path.write_text("[" + "[1]," * 100_000 + "[1]]")
    with pytest.raises(ConnectorFailure, match="is longer than 200000 bytes"):
        file_input(path, "json", array=True, update_format="raw").read(10, 1)


def test_a_large_array_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps([{"student_id": n} for n in range(20_000)], indent=1))
    chunks = [chunk for chunk in _chunks(file_input(path, "json", array=True, update_format="raw"))]
    assert ids(*chunks) == list(range(20_000))


def _chunks(source: InputTransport) -> list[InputChunk]:
    chunks: list[InputChunk] = []
    while not chunks or not chunks[-1].end_of_input:
        chunk = source.read(100, 1)
        assert chunk is not None
        chunks.append(chunk)
    return chunks


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


def test_a_parquet_file_that_is_none_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("nonsense")
    pq.write_table(pa.table({"student_id": [1]}), tmp_path / "b")
    chunks = read_all(file_input(tmp_path, "parquet"))
    assert ids(*chunks) == [1]
    assert "a: not a Parquet file" in chunks[0].parse_errors[0].message


def test_close_wakes_a_reader(tmp_path: Path) -> None:
    source = file_input(tmp_path, follow=True)
    results: list[Any] = []
    reader = threading.Thread(target=lambda: results.append(source.read(10, 30)))
    reader.start()
    source.close()
    source.close()
    reader.join(20)
    assert results == [None]
