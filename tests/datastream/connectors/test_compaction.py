"""Small files of a file sink become larger ones before they are shown, each element once, whatever is interrupted."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest import mock

import pytest

from airflow_pipelines.datastream.common import Encoder, Types
from airflow_pipelines.datastream.connectors import BucketAssigner, FileCompactor, FileCompactStrategy, FileSink, finished_files
from airflow_pipelines.datastream.formats.csv import CsvBulkWriters, CsvSchema
from airflow_pipelines.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.operators.base import OperatorContext
from airflow_pipelines.streams.operators.sink import SinkOperator
from airflow_pipelines.streams.sinks import SubtaskInfo

LINES = FileCompactor.concat_file_compactor()
SALE = Types.ROW_NAMED(["n"], [Types.LONG()])


def _strategy(size: int | None = None, checkpoints: int | None = None) -> FileCompactStrategy:
    return FileCompactStrategy(size, checkpoints)


def _builder(path: Path) -> Any:
    builder = FileSink.for_row_format(str(path), Encoder.simple_string_encoder())
    return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())


class Program:
    """An operator that writes to the sink, through checkpoints, crashes and restarts."""

    def __init__(self, sink: FileSink, state: Any = None) -> None:
        self._sink = sink
        self.state = state
        self.operator = SinkOperator(sink)
        self.operator.context = cast(OperatorContext, SimpleNamespace(subtask=SubtaskInfo("sink", 0, 1)))
        self.operator.open(state)

    def checkpoint(self, *values: Any) -> None:
        """Write, store a checkpoint, and commit it."""
        self.operator.process(Batch(list(values), [None] * len(values)), 0)
        self.state = pickle.loads(pickle.dumps(self.operator.snapshot()))
        self.operator.notify_checkpoint_complete()

    def restart(self) -> Program:
        """Go on from the checkpoint as after a crash, in which nothing is closed."""
        return Program(self._sink, self.state)


def _shown(path: Path) -> list[str]:
    return [file.read_text() for file in sorted(path.rglob("*")) if file.is_file() and not file.name.startswith(".")]


def test_files_wait_until_they_are_large_enough_together(tmp_path: Path) -> None:
    program = Program(_builder(tmp_path).enable_compact(_strategy(size=6), LINES).build())
    program.checkpoint("a")
    program.checkpoint("b")
    program.checkpoint()
    assert _shown(tmp_path) == []
    program.checkpoint("c")
    assert _shown(tmp_path) == ["a\nb\nc\n"]
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
    program.checkpoint("larger")
    assert sorted(_shown(tmp_path)) == ["a\nb\nc\n", "larger\n"]


def test_files_wait_for_some_checkpoints_also_those_without_elements(tmp_path: Path) -> None:
    program = Program(_builder(tmp_path).enable_compact(_strategy(checkpoints=3), LINES).build())
    program.checkpoint("a")
    program.checkpoint("b")
    assert _shown(tmp_path) == []
    program.checkpoint()
    assert _shown(tmp_path) == ["a\nb\n"]
    program.checkpoint("c")
    program = program.restart()
    program.checkpoint("d")
    assert "c\nd\n" not in _shown(tmp_path)
    program.checkpoint()
    assert sorted(_shown(tmp_path)) == ["a\nb\n", "c\nd\n"]


def test_the_end_of_the_input_ends_the_wait(tmp_path: Path) -> None:
    program = Program(_builder(tmp_path).enable_compact(_strategy(size=1000), LINES).build())
    program.checkpoint("a")
    program.operator.end_of_input()
    program.checkpoint("b")
    assert _shown(tmp_path) == ["a\nb\n"]
    assert program.operator.snapshot() is None


def test_each_folder_is_compacted_by_itself(tmp_path: Path) -> None:
    class ByValue(BucketAssigner):
        def get_bucket_id(self, element: Any, context: Any) -> str:
            return str(element)[0]

    builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).with_bucket_assigner(ByValue())
    program = Program(builder.enable_compact(_strategy(size=6), LINES).build())
    program.checkpoint("a1", "b1")
    program.checkpoint("a2")
    assert _shown(tmp_path) == ["a1\na2\n"]
    program.checkpoint("b2")
    assert _shown(tmp_path) == ["a1\na2\n", "b1\nb2\n"]


class Crash(Exception):
    """The process ends here."""


CALLS: dict[str, Callable[..., Any]] = {name: getattr(Path, name) for name in ("replace", "unlink", "open")}


@pytest.mark.parametrize("number", range(12))
def test_a_crash_at_any_step_of_a_compaction_shows_each_element_once(tmp_path: Path, number: int) -> None:
    """The process ends at the first, second ... change of a file, and another one goes on from the checkpoint."""
    program = Program(_builder(tmp_path).enable_compact(_strategy(size=6), LINES).build())
    program.checkpoint("a")
    program.checkpoint("b")
    program.operator.process(Batch(["c"], [None]), 0)
    program.state = program.operator.snapshot()
    seen = 0

    def crash_before(name: str) -> Callable[..., Any]:
        def call(path: Path, *args: Any, **kwargs: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen == number + 1:
                raise Crash
            return CALLS[name](path, *args, **kwargs)

        return call

    crashed = False
    with mock.patch.multiple(Path, **{name: crash_before(name) for name in CALLS}):
        try:
            program.operator.notify_checkpoint_complete()
        except Crash:
            crashed = True
    assert crashed == (number < 9)  # one file to write, three to read, two names, three removals
    program = program.restart()
    assert _shown(tmp_path) == ["a\nb\nc\n"]
    assert program.restart().operator.snapshot() is None
    assert _shown(tmp_path) == ["a\nb\nc\n"]


def test_a_reader_may_take_a_file_away_as_soon_as_it_is_shown(tmp_path: Path) -> None:
    program = Program(_builder(tmp_path).enable_compact(_strategy(size=4), LINES).build())
    program.checkpoint("a")
    program.checkpoint("b")
    for file in tmp_path.iterdir():
        file.unlink()
    program.restart()
    assert _shown(tmp_path) == []


def test_files_that_wait_are_shown_when_compaction_is_switched_off(tmp_path: Path) -> None:
    program = Program(_builder(tmp_path).enable_compact(_strategy(size=1000), LINES).build())
    program.checkpoint("a")
    Program(_builder(tmp_path).disable_compact().build(), program.state)
    assert _shown(tmp_path) == ["a\n"]


def test_state_of_several_tasks_is_taken_over_by_one(tmp_path: Path) -> None:
    sink = _builder(tmp_path).enable_compact(_strategy(size=4), LINES).build()
    first, second = Program(sink), Program(sink)
    first.checkpoint("a")
    second.checkpoint("b")
    Program(sink, [*first.state, *second.state])
    assert _shown(tmp_path) == ["a\nb\n"]


def test_files_that_were_prepared_by_an_earlier_release_are_shown(tmp_path: Path) -> None:
    hidden, final = tmp_path / ".part-1.inprogress", tmp_path / "part-1"
    hidden.write_text("a\n")
    Program(_builder(tmp_path).build(), [[(str(hidden), str(final))]])
    assert _shown(tmp_path) == ["a\n"]


def test_compactors(tmp_path: Path) -> None:
    for folder, compactor, expected in (
        ("between", FileCompactor.concat_file_compactor(b"--\n"), ["a\n--\nb\n"]),
        ("same", FileCompactor.identical_file_compactor(), ["a\n", "b\n"]),
    ):
        program = Program(_builder(tmp_path / folder).enable_compact(_strategy(size=4), compactor).build())
        program.checkpoint("a")
        assert _shown(tmp_path / folder) == []
        program.checkpoint("b")
        assert _shown(tmp_path / folder) == expected


def test_parquet_files_are_compacted_by_their_rows(tmp_path: Path) -> None:
    format_ = ParquetColumnarRowInputFormat(SALE)
    builder = FileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(SALE))
    builder = builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    with pytest.raises(ValueError, match=r"cannot be put after each other: use FileCompactor.record_wise"):
        builder.enable_compact(_strategy(checkpoints=2), LINES)
    program = Program(builder.enable_compact(_strategy(checkpoints=2), FileCompactor.record_wise_file_compactor(format_)).build())
    program.checkpoint((1,), (2,))
    program.checkpoint((3,))
    [file] = [file for file in tmp_path.iterdir() if not file.name.startswith(".")]
    with file.open("rb") as stream:
        assert [row.n for row in format_.records(str(file), stream)] == [1, 2, 3]


def test_what_cannot_work_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"otherwise no file would ever be shown"):
        FileCompactStrategy.builder().build()
    schema = CsvSchema.builder().add_string_column("a")
    with_header = CsvBulkWriters.for_schema(schema.set_use_header().build())
    with pytest.raises(ValueError, match="cannot be put after each other"):
        FileSink.for_bulk_format(str(tmp_path), with_header).enable_compact(_strategy(size=1), LINES)
    without = CsvBulkWriters.for_schema(schema.set_use_header(False).build())
    FileSink.for_bulk_format(str(tmp_path), without).enable_compact(_strategy(size=1), LINES)
    assert finished_files.WaitingFiles(None).show() is None
