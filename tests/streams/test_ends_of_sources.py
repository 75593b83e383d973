"""Event time of every source comes to its end, and no further before: as a script and as in a pipeline, however it is made."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.datastream import Duration, Types
from airflow_pipelines.datastream.connectors import JdbcConnectionOptions, JdbcSource
from airflow_pipelines.datastream.connectors.file_formats import StreamFormat
from airflow_pipelines.datastream.connectors.file_source import FileSource
from airflow_pipelines.streams.function_source import FunctionSource, SourceFunction
from airflow_pipelines.streams.sources import CollectionSource, Polled, Source, SourceReader
from tests.streams.ends_of_sources import LINES, RUNS, USES, timed


class _Lines(SourceFunction):
    def __init__(self, is_bounded: bool, ends: bool) -> None:
        self.is_bounded = is_bounded
        self.ends = ends

    def run(self, ctx: Any) -> Any:
        yield from LINES
        while not self.ends and not ctx.is_cancelled:
            yield None


class _Splits(Source):
    """All elements in one of two splits."""

    def __init__(self, is_bounded: bool) -> None:
        self._is_bounded = is_bounded

    @property
    def is_bounded(self) -> bool:
        return self._is_bounded

    def splits(self, parallelism: int) -> Any:
        return (), LINES

    def open(self, split: Any, position: Any) -> SourceReader:
        return _Reader(split)


class _Reader(SourceReader):
    def __init__(self, lines: Any) -> None:
        self.lines = list(lines)

    def poll(self, limit: int) -> Polled:
        values, self.lines = self.lines[:2], self.lines[2:]
        return Polled(values, finished=not self.lines)

    def position(self) -> int:
        return len(self.lines)


def _files(*paths: Path, watched: bool = False) -> FileSource:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), *map(str, paths))
    return (builder.monitor_continuously(Duration.of_millis(1)) if watched else builder).build()


def _file(folder: Path) -> Path:
    path = folder / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


def _table(folder: Path, interval: int | None) -> JdbcSource:
    path = folder / "lines.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE lines (id INTEGER, line TEXT)")
        connection.executemany("INSERT INTO lines VALUES (?, ?)", list(enumerate(LINES)))
    connection.close()
    options = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(f"jdbc:sqlite:{path}").build()
    builder = JdbcSource.builder().set_connection_options(options).set_table("lines").set_order_columns("id")
    builder = builder.set_type_info(Types.ROW_NAMED(["id", "line"], [Types.LONG(), Types.STRING()]))
    return (builder if interval is None else builder.monitor_continuously(Duration.of_millis(interval))).build()


SOURCES: dict[str, tuple[Callable[[Path], Source], bool]] = {
    "collection": (lambda _: CollectionSource(LINES), True),
    "bounded function": (lambda _: FunctionSource(_Lines(is_bounded=True, ends=True)), True),
    "function that ends": (lambda _: FunctionSource(_Lines(is_bounded=False, ends=True)), True),
    "function": (lambda _: FunctionSource(_Lines(is_bounded=False, ends=False)), False),
    "bounded splits": (lambda _: _Splits(is_bounded=True), True),
    "splits that end": (lambda _: _Splits(is_bounded=False), True),
    "file": (lambda folder: _files(_file(folder)), True),
    "folder": (lambda folder: _files(_file(folder).parent), True),
    "watched folder": (lambda folder: _files(_file(folder).parent, watched=True), False),
    "table": (lambda folder: _table(folder, None), True),
    "watched table": (lambda folder: _table(folder, 1), False),
}
"""Sources of the same lines, and whether they end."""


@pytest.mark.parametrize("at_source", [True, False], ids=["at source", "after it"])
# With two tasks, what is late depends on which of them says first how far it is.
@pytest.mark.parametrize(("use", "parallelism"), [*((use, 1) for use in USES), ("timers", 2), ("windows", 2)])
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", SOURCES)
def test_all_that_is_due_comes(tmp_path: Path, name: str, run: str, parallelism: int, at_source: bool, use: str) -> None:
    make, ends = SOURCES[name]
    define, before, at_end = USES[use]
    stream = define(timed(make(tmp_path), at_source, parallelism))
    assert RUNS[run](stream, ends) == sorted([*before, *at_end] if ends else before)
