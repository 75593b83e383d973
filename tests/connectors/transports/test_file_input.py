"""Files that are read to their ends: positions, patterns, errors with their places, and the lag."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.transports.files import readers
from tests.connectors.transports.file_readers import (
    chunks_of,
    file_input,
    ids,
    left,
    read_all,
)


def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_bytes(b"\xef\xbb\xbf1,a,1,\r\nx,a,1,\r\n\r\n3,a,1,")
    (chunk,) = read_all(file_input(path))
    assert (ids(chunk), chunk.records, chunk.num_parse_errors, chunk.end_of_input) == ([1, 3], 2, 1, True)
    assert chunk.parse_errors[0].message.startswith("grades.csv: line 2: column 'student_id'")
    assert chunk.position == {"through": "grades.csv"}
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
    deeper = tmp_path / "x" / "y"
    deeper.mkdir(parents=True)
    (deeper / "z.csv").write_text("122,x,1,\n")
    assert ids(*read_all(file_input(tmp_path / "*.csv"))) == [97, 98]
    assert ids(*read_all(file_input(tmp_path / "**" / "*.csv"))) == [97, 98, 122]
    assert ids(*read_all(file_input(tmp_path))) == [97, 98, 99], "not those of its folders"
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


@pytest.mark.rest
def test_a_large_array_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "g.json"
    path.write_text(json.dumps([{"student_id": n} for n in range(20_000)], indent=1))
    chunks = [chunk for chunk in chunks_of(file_input(path, "json", array=True, update_format="raw"))]
    assert ids(*chunks) == list(range(20_000))


def test_a_position_of_an_earlier_release_is_gone_on_with(tmp_path: Path) -> None:
    for part in range(3):
        (tmp_path / f"{part}.csv").write_text("".join(f"{part * 10 + n},a,1,\n" for n in range(3)))
    earlier = {"done": ["0.csv"], "files": {"1.csv": {"offset": 6, "index": 2, "state": {"header": None}}}}
    first = file_input(tmp_path, position={"done": ["0.csv"], "files": {}})
    assert ids(*read_all(first)) == [10, 11, 12, 20, 21, 22]
    at = file_input(tmp_path).read(4, 30)
    assert at is not None
    place = at.position["files"]["places"]["1.csv"]
    assert ids(*read_all(file_input(tmp_path, position={**earlier, "files": {"1.csv": place}}))) == [11, 12, 20, 21, 22]
    pq.write_table(pa.table({"student_id": list(range(20))}), tmp_path / "p.parquet", row_group_size=6)
    old = {"done": [], "files": {"p.parquet": {"offset": 8}}}
    chunks = read_all(file_input(tmp_path / "p.parquet", "parquet", position=old))
    assert ids(*chunks) == list(range(8, 20))


def test_rows_before_a_file_that_fails_are_given_first(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,a,1,\n")
    (tmp_path / "b.csv").write_text("2,a,1,\n")
    source = file_input(tmp_path)
    (tmp_path / "b.csv").unlink()
    assert ids(source.read(10, 1)) == [1]
    with pytest.raises(ConnectorFailure, match=r"b\.csv was there at the start and is gone"):
        source.read(10, 1)
    (tmp_path / "b.csv").write_text("2,a,1,\n")
    assert ids(source.read(10, 1)) == [2]
    source.close()


def test_the_lag_is_what_was_found_and_not_read(tmp_path: Path) -> None:
    lines = [f"{number},a,1,\n" for number in range(100, 110)]
    (tmp_path / "a.csv").write_text("".join(lines))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress("".join(lines).encode()))
    (tmp_path / "c.csv").write_text("".join(lines))
    packed = (tmp_path / "b.csv.gz").stat().st_size
    source = file_input(tmp_path, follow=True, buffer_size_bytes=40)
    seen, position = [left(source)], None
    while left(source):
        chunk = source.read(4, 1)
        assert chunk is not None
        position = chunk.position
        seen.append(left(source))
    # A place in a packed file is none in its bytes.
    assert seen[:3] == [180 + packed, 180 + packed - 4 * 9, 180 + packed - 8 * 9]
    assert 90 + packed in seen
    assert 90 in seen
    assert seen == sorted(seen, reverse=True)
    source.close()
    with (tmp_path / "a.csv").open("a") as file:
        file.write(lines[0])
    again = file_input(tmp_path, follow=True, position=position)
    assert left(again) == 9
    assert ids(again.read(100, 1)) == [100]
    again.read(100, 0.01)
    assert left(again) == 0
    again.close()
