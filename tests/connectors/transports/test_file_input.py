"""Reading files: one, many, growing ones, from any position, and what goes wrong."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import json
import os
import threading
import zlib
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.base import ConnectorFailure, InputChunk, InputTransport, Lagging
from airflow_pipelines.connectors.definition import PipelineReference
from airflow_pipelines.connectors.opening import open_input
from airflow_pipelines.connectors.transports.files import file_set_input, readers, store
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.schema import RelationSchema
from tests.connectors.relations import GRADES, col, relation

TWO_ROWS = pa.table({"student_id": [1, 2]})


def file_input(
    path: Path | str,
    format_name: str = "csv",
    *,
    follow: bool = False,
    position: Any = None,
    schema: RelationSchema = GRADES,
    **config: Any,
) -> InputTransport:
    own = {name: config.pop(name) for name in ("buffer_size_bytes", "compression") if name in config}
    transport = {"path": str(path), "follow": follow, **own}
    source = open_input(
        Connector(schema.name, "c", ConnectorDirection.INPUT, "file_input", transport, format_name, config),
        schema,
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
    chunks = [chunk for chunk in _chunks(file_input(path, "json", array=True, update_format="raw"))]
    assert ids(*chunks) == list(range(20_000))


def _chunks(source: InputTransport) -> list[InputChunk]:
    chunks: list[InputChunk] = []
    while not chunks or not chunks[-1].end_of_input:
        chunk = source.read(100, 1)
        assert chunk is not None
        chunks.append(chunk)
    return chunks


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
    position = _without_marks(first.position)
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


def _without_marks(position: Any) -> Any:
    """A position as releases wrote it that did not mark what they had read."""
    if isinstance(position, dict):
        return {name: _without_marks(value) for name, value in position.items() if name != "mark"}
    return [_without_marks(value) for value in position] if isinstance(position, list | tuple) else position


def test_a_parquet_file_that_is_none_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("nonsense")
    pq.write_table(pa.table({"student_id": [1]}), tmp_path / "b")
    chunks = read_all(file_input(tmp_path, "parquet"))
    assert ids(*chunks) == [1]
    assert "a: not a complete Parquet file" in chunks[0].parse_errors[0].message


def test_timestamps_of_sparks_parquet_files_have_all_years(tmp_path: Path) -> None:
    moments = [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)]
    table = pa.table({"ts": pa.array(moments, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    (chunk,) = read_all(file_input(tmp_path, "parquet", schema=relation(col("ts", "TIMESTAMP"))))
    assert chunk.changes is not None
    assert chunk.changes.rows.column("ts").to_pylist() == moments


def test_close_wakes_a_reader(tmp_path: Path) -> None:
    source = file_input(tmp_path, follow=True)
    results: list[Any] = []
    reader = threading.Thread(target=lambda: results.append(source.read(10, 30)))
    reader.start()
    source.close()
    source.close()
    reader.join(20)
    assert results == [None]


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


@pytest.mark.parametrize(("ending", "codec"), [("gz", "gzip"), ("BZ2", "bz2"), ("zst", "zstd"), ("lz4", "lz4")])
def test_compressed_text_is_gone_on_with_from_every_position(tmp_path: Path, ending: str, codec: str) -> None:
    # Two parts, as what is appended to a compressed file is.
    data = packed(codec, "".join(f"{n},a,1,\n" for n in range(25))) + packed(codec, "".join(f"{n},b,1,\n" for n in range(25, 40)))
    (tmp_path / f"g.csv.{ending}").write_bytes(data)
    (tmp_path / "h.csv").write_text("40,c,1,\n")
    chunks = read_all(file_input(tmp_path), 7)
    assert ids(*chunks) == list(range(41))
    for number, chunk in enumerate(chunks):
        resumed = read_all(file_input(tmp_path, position=chunk.position), 1000)
        assert ids(*chunks[: number + 1], *resumed) == list(range(41))
    (tmp_path / "h.csv").unlink()
    path = tmp_path / f"g.csv.{ending}"
    path.rename(tmp_path / "named-otherwise")
    assert ids(*read_all(file_input(tmp_path, compression=codec))) == list(range(40))
    assert sum(chunk.num_parse_errors for chunk in read_all(file_input(tmp_path))) > 0


@pytest.mark.rest("bz2")
@pytest.mark.parametrize("codec", ["gzip", "bz2", "zstd", "lz4"])
def test_a_compressed_file_that_is_cut_is_read_as_far_as_it_goes(tmp_path: Path, codec: str) -> None:
    lines = "".join(f"{n},x{os.urandom(25).hex()},1,\n" for n in range(50_000))
    data = packed(codec, lines)
    (tmp_path / "a.csv").write_bytes(data[: len(data) // 2])
    (tmp_path / "b.csv").write_bytes(packed(codec, "99999,z,1,\n"))
    chunks = read_all(file_input(tmp_path, compression=codec))
    found = ids(*chunks)
    assert found[-1] == 99999
    assert found[:-1] == list(range(len(found) - 1))
    errors = [error for chunk in chunks for error in chunk.parse_errors]
    assert len(found) > 10_000
    if codec in {"gzip", "bz2"}:
        unpacked = (zlib.decompressobj(31) if codec == "gzip" else bz2.BZ2Decompressor()).decompress(data[: len(data) // 2])
        assert len(unpacked) - lines.index(f"{len(found) - 1},x") < 65 << 10
    (error,) = errors
    assert f"a.csv: the file is damaged after byte {lines.index(f'{len(found) - 1},x')} of its text" in error.message


def test_a_compressed_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_text("1,a,1,\n")
    (chunk,) = read_all(file_input(tmp_path))
    assert (ids(chunk), chunk.num_parse_errors) == ([], 1)
    assert "a.csv.gz: the file is damaged after byte 0 of its text" in chunk.parse_errors[0].message


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


def packed(codec: str, text: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(text.encode())
    return bytes(sink.getvalue())


@pytest.mark.parametrize("max_records", [1, 7, 1000])
@pytest.mark.parametrize("format_name", ["avro", "orc"])
def test_files_that_describe_themselves_are_gone_on_with_from_every_position(
    tmp_path: Path, format_name: str, max_records: int
) -> None:
    for part in range(2):
        rows = [{"student_id": n, "class": f"c{n}" if n % 3 else None} for n in range(part * 20, part * 20 + 20)]
        path = tmp_path / f"part-{part}.{format_name}"
        if format_name == "avro":
            write_avro(path, rows)
        else:
            orc.write_table(pa.Table.from_pylist(rows), path)
    chunks = read_all(file_input(tmp_path, format_name), max_records)
    assert ids(*chunks) == list(range(40))
    for number, chunk in enumerate(chunks):
        resumed = read_all(file_input(tmp_path, format_name, position=chunk.position), 5)
        assert ids(*chunks[: number + 1], *resumed) == list(range(40))


@pytest.mark.parametrize("format_name", ["avro", "orc"])
def test_a_file_that_is_cut_is_named(tmp_path: Path, format_name: str) -> None:
    rows = [{"student_id": n, "class": f"c{n}"} for n in range(2000)]
    path = tmp_path / "whole"
    if format_name == "avro":
        write_avro(path, rows)
    else:
        orc.write_table(pa.Table.from_pylist(rows), path)
    (tmp_path / "a").write_bytes(path.read_bytes()[:-10])
    chunks = read_all(file_input(tmp_path, format_name))
    found = ids(*chunks)
    assert found[-2000:] == list(range(2000))
    assert found[:-2000] == list(range(len(found) - 2000))
    (error,) = [error for chunk in chunks for error in chunk.parse_errors]
    assert error.message.startswith("a: ")
    # In a followed folder its end may be on its way.
    source = file_input(tmp_path / "a*", format_name, follow=True)
    early = source.read(10_000, 0)
    (tmp_path / "a").write_bytes(path.read_bytes())
    assert ids(early, source.read(10_000, 5)) == list(range(2000))
    source.close()


def write_avro(path: Path, rows: list[dict[str, Any]]) -> None:
    fields = [{"name": "student_id", "type": "long"}, {"name": "class", "type": ["null", "string"]}]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "grade", "fields": fields}, rows, codec="deflate", sync_interval=60)


def test_small_files_come_together(tmp_path: Path) -> None:
    for number in range(1200):
        (tmp_path / f"{number:05}.json").write_text(f'{{"student_id": {number}}}\n' + ("oops\n" if number == 7 else ""))
    chunks = read_all(file_input(tmp_path, "json", update_format="raw", lines="single"), 1000)
    assert ids(*chunks) == list(range(1200))
    assert len(chunks) < 120
    assert [error.message[:13] for chunk in chunks for error in chunk.parse_errors] == ["00007.json: re"[:13]]
    # Names in order say it with the last one.
    assert all(len(json.dumps(chunk.position)) < 200 for chunk in chunks)


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


def left(source: InputTransport) -> int | None:
    assert isinstance(source, Lagging)
    lag = source.lag()
    assert lag is not None
    assert lag.records is lag.seconds is None
    return lag.bytes


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


def test_what_is_in_a_columnar_file_counts_until_it_is_read(tmp_path: Path) -> None:
    pq.write_table(TWO_ROWS, tmp_path / "a.parquet", row_group_size=1)
    source = file_input(tmp_path / "a.parquet", "parquet")
    size = (tmp_path / "a.parquet").stat().st_size
    assert left(source) == size
    source.read(1, 1)
    assert left(source) == size
    while not (chunk := source.read(1, 1)) or not chunk.end_of_input:
        pass
    assert left(source) == 0
    source.close()
