"""Files that are compressed or describe themselves, and files that are cut or of another kind."""

from __future__ import annotations

import bz2
import datetime as dt
import json
import os
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.connectors.relations import col, relation
from tests.connectors.transports.file_readers import (
    TWO_ROWS,
    file_input,
    ids,
    left,
    packed,
    read_all,
    write_avro,
)


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


@pytest.mark.parametrize(
    ("ending", "codec"), [("gz", "gzip"), ("BZ2", "bz2"), ("zst", "zstd"), ("lz4", "lz4"), ("xz", "xz"), ("deflate", "deflate")]
)
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
@pytest.mark.parametrize("codec", ["gzip", "bz2", "zstd", "lz4", "xz", "deflate"])
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


def test_small_files_come_together(tmp_path: Path) -> None:
    for number in range(1200):
        (tmp_path / f"{number:05}.json").write_text(f'{{"student_id": {number}}}\n' + ("oops\n" if number == 7 else ""))
    chunks = read_all(file_input(tmp_path, "json", update_format="raw", lines="single"), 1000)
    assert ids(*chunks) == list(range(1200))
    assert len(chunks) < 120
    assert [error.message[:13] for chunk in chunks for error in chunk.parse_errors] == ["00007.json: re"[:13]]
    # Names in order say it with the last one.
    assert all(len(json.dumps(chunk.position)) < 200 for chunk in chunks)


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
