"""Folders of files: each step once, whatever a crash left; sizes, formats, stores, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.common.references import NO_REFERENCES
from airflow_pipelines.connectors.base import ConnectorFailure, OutputTransport, TransientConnectorFailure
from airflow_pipelines.connectors.declarations import delivery_of
from airflow_pipelines.connectors.definition import Delivery, PipelineReference
from airflow_pipelines.connectors.opening import open_output
from airflow_pipelines.connectors.transports.files.folder_output import FolderOutput
from airflow_pipelines.connectors.transports.files.line_output import FileOutput
from airflow_pipelines.connectors.transports.files.manifest import Manifest
from airflow_pipelines.connectors.validation import validate
from airflow_pipelines.program.connectors import Connector, ConnectorDirection
from airflow_pipelines.rows.formats.option_errors import InvalidOptionError
from airflow_pipelines.systems.files.compression import Compression, Decompressed
from tests.connectors.relations import col, relation
from tests.connectors.transports.delta_table.tables import PEOPLE, changes
from tests.connectors.transports.files.manifests import listed
from tests.fixtures.s3 import Bucket

PIPELINE = PipelineReference("p1", "test")


def declared(path: str, format_name: str = "json", format_config: Any = None, **options: Any) -> Connector:
    config = {"path": path, **options}
    return Connector("v", "o", ConnectorDirection.OUTPUT, "file_output", config, format_name, format_config or {})


def output(path: Path | str, *, resumed: bool = False, pipeline: PipelineReference = PIPELINE, **parts: Any) -> FolderOutput:
    sink = open_output(declared(f"{path}/", **parts), PEOPLE, NO_REFERENCES, pipeline, ("id",))
    assert isinstance(sink, FolderOutput)
    sink.open(resumed)
    return sink


def committed(path: Path | str, **storage: Any) -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files that the manifest of a folder lists, in order."""
    filesystem, folder = fsspec.core.url_to_fs(str(path), **storage)
    filesystem.invalidate_cache()
    for file in listed(filesystem, folder):
        data = filesystem.cat_file(f"{folder}/{file['name']}")
        assert len(data) == file["bytes"]
        yield file["name"], data


def lines(path: Path | str) -> list[Any]:
    return [json.loads(line) for _, data in committed(path) for line in data.splitlines()]


def ids(path: Path | str) -> list[int]:
    return [next(iter(line.values()))["id"] for line in lines(path)]


def test_each_step_has_files_of_its_own(tmp_path: Path) -> None:
    sink = output(tmp_path / "out")
    assert sink.committed_step() is None
    assert sink.write(1, changes((1, "a", 1), (2, "b", 1)))[0] == 2
    sink.write(5, changes((1, "a", -1)))
    assert lines(tmp_path / "out") == [
        {"insert": {"id": 1, "name": "a"}},
        {"insert": {"id": 2, "name": "b"}},
        {"delete": {"id": 1, "name": "a"}},
    ]
    # Whoever looks at the folder finds nothing that is not complete.
    assert len(list((tmp_path / "out").glob("part-*"))) == 2
    again = output(tmp_path / "out", resumed=True)
    assert again.committed_step() == 5
    assert again.write(5, changes((1, "a", -1))) == (0, 0)
    again.write(6, changes((7, "z", 1)))
    assert ids(tmp_path / "out") == [1, 2, 1, 7]


def test_what_a_crash_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    sink = output(folder, max_file_rows=2)
    sink.write(1, changes((1, "a", 1)))

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    for where, name in ((Manifest, "add"), (FolderOutput, "_finish")):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, killed)
            with pytest.raises(KeyboardInterrupt):
                sink.write(2, changes((2, "b", 1), (3, "b", 1), (4, "b", 1)))
    assert ids(folder) == [1]
    assert len(list(folder.iterdir())) > 3
    (folder / "part-of-somebody-else.json").write_text("{}")
    again = output(folder, resumed=True)
    assert again.committed_step() == 1
    assert sorted(path.name.partition("-")[0] for path in folder.iterdir()) == ["_commits", "part", "part"]
    again.write(2, changes((2, "b", 1)))
    assert ids(folder) == [1, 2]
    assert (folder / "part-of-somebody-else.json").exists()


def test_steps_are_taken_back(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    sink = output(folder)
    for step in range(1, 5):
        sink.write(step, changes((step, "a", 1)))
    again = output(folder, resumed=True)
    again.rewind(2)
    assert again.committed_step() == 2
    assert ids(folder) == [1, 2]
    assert len(list(folder.glob("part-*"))) == 2
    again.write(3, changes((30, "a", 1)))
    assert ids(folder) == [1, 2, 30]
    # A first start begins anew.
    output(folder).write(1, changes((9, "a", 1)))
    assert ids(folder) == [9]
    with pytest.raises(ConnectorFailure, match="the folder has the files of another output"):
        output(folder, pipeline=PipelineReference("p2", "other"))
    assert ids(folder) == [9]


def test_files_become_as_large_as_they_may(tmp_path: Path) -> None:
    sink = output(tmp_path / "rows", max_file_rows=4)
    sink.write(1, changes(*((n, "x", 1) for n in range(10))))
    assert [data.count(b"\n") for _, data in committed(tmp_path / "rows")] == [4, 4, 2]
    # The two rows of an update are one change.
    given = [row for n in range(10) for row in ((n, "x", -1), (n, "y", 1))]
    sink.write(2, changes(*given, key=("id",)))
    assert [line for line in lines(tmp_path / "rows") if "update" in line] == [
        {"update": {"id": n, "name": "y"}} for n in range(10)
    ]
    assert sum("delete" in line for line in lines(tmp_path / "rows")) == 0
    sink = output(tmp_path / "bytes", max_file_bytes=200_000)
    sink.write(1, changes(*((n, "x" * 20, 1) for n in range(60_000))))
    sizes = [len(data) for _, data in committed(tmp_path / "bytes")]
    assert len(sizes) > 3
    assert max(sizes) < 1_000_000
    assert ids(tmp_path / "bytes") == list(range(60_000))


@pytest.mark.parametrize("compression", ["gzip", "bz2", "zstd", "lz4"])
def test_compressed_files_can_be_read_again(tmp_path: Path, compression: str) -> None:
    sink = output(tmp_path / "out", compression=compression)
    sink.write(1, changes(*((n, "x", 1) for n in range(1000))))
    ((name, _),) = committed(tmp_path / "out")
    text = Decompressed((tmp_path / "out" / name).open("rb"), Compression(compression))
    data = b""
    while more := text.read(1 << 20):
        data += more
    assert [json.loads(line)["insert"]["id"] for line in data.splitlines()] == list(range(1000))
    assert name.rpartition(".")[2] in {"gz", "bz2", "zst", "lz4"}


def test_csv_and_arrays(tmp_path: Path) -> None:
    output(tmp_path / "csv", format_name="csv").write(1, changes((1, 'a"', 1), (2, None, -1)))
    ((name, data),) = committed(tmp_path / "csv")
    assert name.endswith(".csv")
    assert sorted(data.splitlines()) == [b'1,"a""",1', b"2,,-1"]
    arrays = {"array": True, "buffer_size_records": 2}
    output(tmp_path / "json", format_config=arrays).write(1, changes((1, "a", 1), (2, "a", 1), (3, "a", 1)))
    assert [len(line) for line in lines(tmp_path / "json")] == [2, 1]


def test_parquet_says_what_each_change_does(tmp_path: Path) -> None:
    sink = output(tmp_path / "out", format_name="parquet", max_file_rows=3)
    sink.write(1, changes((1, "a", 1), (2, None, 1)))
    sink.write(2, changes((1, "a", -1), (1, "b", 1), (2, None, -1), (3, "c", 1), (4, "d", 1), key=("id",)))
    tables = [pq.read_table(pa.BufferReader(data)) for _, data in committed(tmp_path / "out")]
    found = pa.concat_tables(tables)
    assert [tuple(row.values()) for row in found.to_pylist()] == [
        (1, "a", "i"),
        (2, None, "i"),
        (1, "b", "u"),
        (2, None, "d"),
        (3, "c", "i"),
        (4, "d", "i"),
    ]


def test_another_file_system() -> None:
    sink = output("memory://folder-output-test")
    sink.write(1, changes((1, "a", 1)))
    assert ids("memory://folder-output-test") == [1]
    with pytest.raises(ConnectorFailure, match="cannot use path"):
        output("nosuchscheme://x")


@pytest.mark.processes
def test_an_object_store(s3: Callable[[], Bucket]) -> None:
    bucket = s3()
    keys: dict[str, Any] = {
        "key": bucket.access_key,
        "secret": bucket.secret_key,
        "endpoint_url": bucket.endpoint,
        "client_kwargs": {"region_name": "us-east-1"},
        "skip_instance_cache": True,
    }
    path = f"s3://{bucket.name}/out"
    sink = output(path, storage_options=keys, compression="gzip", max_file_rows=2)
    sink.write(1, changes((1, "a", 1), (2, "b", 1), (3, "c", 1)))
    sink.write(2, changes((1, "a", -1)))
    assert len(list(committed(path, **keys))) == 3
    filesystem, folder = fsspec.core.url_to_fs(path, **keys)
    filesystem.pipe_file(f"{folder}/part-{3:020d}-0000-00000000.json.gz", b"left by a crash")
    again = output(path, resumed=True, storage_options=keys)
    assert again.committed_step() == 2
    again.rewind(1)
    assert len(list(committed(path, **keys))) == 2
    filesystem.invalidate_cache()
    assert len([name for name in filesystem.ls(folder, detail=False) if "part-" in name]) == 2
    with pytest.raises(ConnectorFailure, match="may write it"):
        output(path, storage_options={**keys, "secret": "wrong"})
    with pytest.raises(TransientConnectorFailure):
        output(path, storage_options={**keys, "endpoint_url": "http://127.0.0.1:9"})


@pytest.mark.parametrize(
    ("connector", "message"),
    [
        (declared("/data/out", max_file_rows=5), "'max_file_rows' is for folders of files"),
        (declared("s3://bucket/out"), "end 'path' with a slash"),
        (declared("/data/out/", compression="auto"), "is one of none, gzip"),
        (declared("/data/out", "parquet"), "file_output writes Parquet as a folder of files"),
        (declared("/data/out/", "parquet", compression="gzip"), "'compression' is for text"),
    ],
)
def test_what_cannot_be_written_is_refused(connector: Connector, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        validate(connector, PEOPLE)


def test_columns_that_parquet_cannot_have() -> None:
    own = relation(col("__op", "VARCHAR"), name="v")
    with pytest.raises(InvalidOptionError, match="the view has a column '__op' itself"):
        validate(declared("/data/out/", "parquet"), own)
    validate(declared("/data/out/"), own)


def test_steps_do_not_wait_for_folders() -> None:
    assert delivery_of(declared("/data/out/")) is Delivery.QUEUED
    assert delivery_of(declared("/data/out")) is Delivery.IN_STEP
    opened: OutputTransport = open_output(declared("/data/out"), PEOPLE, NO_REFERENCES, PIPELINE)
    assert isinstance(opened, FileOutput)
