"""Connectors in programs that run."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.datastream import Duration, MapFunction, StreamExecutionEnvironment, Types, WatermarkStrategy
from airflow_pipelines.datastream.common import Encoder, JobStatus, RestartStrategies
from airflow_pipelines.datastream.connectors import (
    BucketAssigner,
    FileSink,
    FileSource,
    JdbcConnectionOptions,
    JdbcSink,
    NumberSequenceSource,
    StreamFormat,
    StreamingFileSink,
)

NO_WATERMARKS = WatermarkStrategy.no_watermarks()


class _FailsOnce(MapFunction):
    def __init__(self, flag: Path, element: str) -> None:
        self.flag = flag
        self.element = element

    def map(self, value: str) -> str:
        if value == self.element and not self.flag.exists():
            self.flag.touch()
            raise ConnectionError("gone for a moment")
        return value


def _environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def _file_sink(path: Path) -> FileSink:
    builder = FileSink.for_row_format(str(path), Encoder.simple_string_encoder())
    return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()


def _lines(path: Path) -> list[str]:
    return [line for file in sorted(path.iterdir()) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_files_are_read_and_written_exactly_once_across_a_failure(tmp_path: Path, parallelism: int) -> None:
    (tmp_path / "in").mkdir()
    for name in "abcd":
        (tmp_path / "in" / name).write_text("".join(f"{name}{number}\n" for number in range(9_000)))
    environment = _environment().set_parallelism(parallelism).enable_checkpointing(10)
    environment.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    lines = environment.from_source(
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path / "in")).build(), NO_WATERMARKS, "files"
    )
    assert lines.get_type() == Types.STRING()
    lines.map(_FailsOnce(tmp_path / "failed", "d8500")).sink_to(_file_sink(tmp_path / "out"))
    environment.execute("copy")
    assert (tmp_path / "failed").exists()
    written = _lines(tmp_path / "out")
    assert len(written) == 36_000
    assert set(written) == {f"{name}{number}" for name in "abcd" for number in range(9_000)}


def test_numbers_to_text_files_as_print_shows_them(tmp_path: Path) -> None:
    environment = _environment()
    numbers = environment.from_source(NumberSequenceSource(1, 3), NO_WATERMARKS, "numbers")
    rows = numbers.map(lambda number: (number, None), Types.ROW([Types.SHORT(), Types.STRING()]))
    sink = StreamingFileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
    rows.add_sink(sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
    environment.execute()
    assert _lines(tmp_path / "out") == ["+I[1, null]", "+I[2, null]", "+I[3, null]"]
    assert sorted(_environment().read_text_file(str(tmp_path / "out")).execute_and_collect()) == _lines(tmp_path / "out")


def test_a_watched_folder_is_read_until_the_program_is_cancelled(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a1\na2\n")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    stream = _environment().from_source(source.monitor_continuously(Duration.of_millis(1)).build(), NO_WATERMARKS, "folder")
    found: Any = stream.execute_and_collect()
    with found:
        assert [next(found), next(found)] == ["a1", "a2"]
        (tmp_path / ".b").write_text("b1\n")
        (tmp_path / ".b").rename(tmp_path / "b")
        assert next(found) == "b1"


def test_rows_are_written_to_a_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(f"jdbc:sqlite:{tmp_path / 't.db'}").build()
    row = Types.ROW([Types.INT(), Types.STRING()])
    environment = _environment()
    environment.from_collection([(1, "a"), (2, "b")]).add_sink(JdbcSink.sink("INSERT INTO t VALUES (?, ?)", row, options))
    environment.execute()
    with sqlite3.connect(tmp_path / "t.db") as connection:
        assert connection.execute("SELECT * FROM t ORDER BY id").fetchall() == [(1, "a"), (2, "b")]


def test_functions_import_the_files_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "helper_of_a_stream_program.py").write_text("def twice(value):\n    return 2 * value\n")

    def doubled(value: int) -> int:
        from helper_of_a_stream_program import twice

        return int(twice(value))

    environment = _environment()
    environment.add_python_file(str(tmp_path / "helper_of_a_stream_program.py"))
    assert list(environment.from_collection([1, 2]).map(doubled).execute_and_collect()) == [2, 4]


def test_a_client_sees_the_end_of_a_run(tmp_path: Path) -> None:
    environment = _environment()
    environment.from_source(NumberSequenceSource(1, 10), NO_WATERMARKS, "numbers").sink_to(_file_sink(tmp_path / "out"))
    client = environment.execute_async()
    assert client.get_job_execution_result().result(timeout=30).get_job_id() == client.get_job_id()
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert _lines(tmp_path / "out") == [str(number) for number in range(1, 11)]
