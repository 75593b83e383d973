from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from airflow_pipelines.datastream.common.row import Row
from airflow_pipelines.datastream.common.serialization import Encoder
from airflow_pipelines.datastream.common.typeinfo import Types
from airflow_pipelines.datastream.connectors.file_buckets import (
    BucketAssigner,
    BucketContext,
    DateTimeBucketAssigner,
    OutputFileConfig,
    RollingPolicy,
)
from airflow_pipelines.datastream.connectors.file_sink import FileSink, StreamingFileSink
from airflow_pipelines.streams.clock import ManualClock
from airflow_pipelines.streams.elements import Batch
from airflow_pipelines.streams.sinks import SubtaskInfo

TASK = SubtaskInfo("sink", 0, 1)
ENCODER = Encoder.simple_string_encoder()


def _batch(*values: Any) -> Batch:
    return Batch(list(values), [None] * len(values))


def _builder(path: Path) -> FileSink.RowFormatBuilder:
    return FileSink.for_row_format(str(path), ENCODER).with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())


def _shown(path: Path) -> list[str]:
    return sorted(file.read_text() for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))


def test_files_appear_when_their_checkpoint_is_durable(tmp_path: Path) -> None:
    writer = _builder(tmp_path).build().open(TASK)
    writer.write(_batch("a", "b"))
    writer.write(_batch("c"))
    prepared = writer.prepare()
    writer.write(_batch("d"))
    assert _shown(tmp_path) == []
    writer.commit(prepared)
    assert _shown(tmp_path) == ["a\nb\nc\n"]
    writer.commit(writer.prepare())
    assert _shown(tmp_path) == ["a\nb\nc\n", "d\n"]
    assert writer.prepare() is None


def test_what_was_prepared_can_be_committed_again_after_a_restart(tmp_path: Path) -> None:
    sink = _builder(tmp_path).build()
    writer = sink.open(TASK)
    writer.write(_batch("a"))
    prepared = pickle.loads(pickle.dumps(writer.prepare()))
    writer.write(_batch("lost"))
    writer.close()
    again = pickle.loads(pickle.dumps(sink)).open(TASK)
    again.commit(prepared)
    again.commit(prepared)
    again.write(_batch("b"))
    again.commit(again.prepare())
    assert _shown(tmp_path) == ["a\n", "b\n"]
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_files_may_be_taken_away_when_they_are_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sink = _builder(tmp_path / "out").build()
    writer = sink.open(TASK)
    writer.write(_batch("a"))
    prepared = writer.prepare()
    writer.commit(prepared)
    writer.close()
    assert caplog.messages == []
    (tmp_path / "out").rename(tmp_path / "taken")
    again = sink.open(TASK)
    again.commit(prepared)
    [message] = caplog.messages
    assert message.startswith(f"{prepared[0][1]} is not there: it was taken away")
    again.write(_batch("b"))
    again.commit(again.prepare())
    assert (_shown(tmp_path / "taken"), _shown(tmp_path / "out")) == (["a\n"], ["b\n"])


def test_elements_are_written_as_print_shows_them(tmp_path: Path) -> None:
    type_ = Types.ROW([Types.STRING(), Types.BOOLEAN()])
    writer = _builder(tmp_path).build().for_type(type_).open(TASK)
    writer.write(_batch(type_.convert(("é", None))))
    writer.commit(writer.prepare())
    untyped = _builder(tmp_path).build().for_type(None).open(TASK)
    untyped.write(_batch(Row("a", True)))
    untyped.commit(untyped.prepare())
    assert _shown(tmp_path) == ["+I[é, null]\n", "<Row('a', True)>\n"]


def test_files_are_named_as_configured(tmp_path: Path) -> None:
    config = OutputFileConfig.builder().with_part_prefix("pre").with_part_suffix(".ext").build()
    writer = _builder(tmp_path).with_output_file_config(config).build().open(TASK)
    for value in ("a", "b"):
        writer.write(_batch(value))
        writer.commit(writer.prepare())
    first, second = sorted(file.name for file in tmp_path.iterdir())
    assert first.startswith("pre-")
    assert (first[-6:], second[-6:]) == ("-0.ext", "-1.ext")
    assert first[:-6] == second[:-6]


def test_files_roll_by_size_age_and_inactivity(tmp_path: Path) -> None:
    clock = ManualClock(1_000_000)
    policy = RollingPolicy.default_rolling_policy(part_size=6, rollover_interval=1000, inactivity_interval=100)
    base = _builder(tmp_path).with_rolling_policy(policy).build()
    writer = FileSink(**{**vars(base), "clock": clock}).open(TASK)
    writer.write(_batch("aa", "bb", "cc"))
    clock.advance(99)
    writer.write(_batch("d"))
    clock.advance(100)
    writer.write(_batch("e"))
    writer.commit(writer.prepare())
    assert _shown(tmp_path) == ["aa\nbb\n", "cc\nd\n", "e\n"]


class _ByValue(BucketAssigner):
    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        return str(element)


def test_buckets_are_folders(tmp_path: Path) -> None:
    sink = FileSink.for_row_format(str(tmp_path), ENCODER).with_bucket_assigner(_ByValue()).build()
    writer = sink.open(TASK)
    values = [f"d{number}/x" for number in range(120)]  # more than are kept open
    writer.write(_batch(*values, *values))
    writer.commit(writer.prepare())
    assert sorted({str(file.parent.relative_to(tmp_path)) for file in tmp_path.rglob("part-*")}) == sorted(values)
    assert "".join(_shown(tmp_path)).count("\n") == 240
    for outside in ("../x", "/x"):
        with pytest.raises(ValueError, match="leads out of the base path"):
            writer.write(_batch(outside))


def test_default_buckets_are_hours_of_processing_time() -> None:
    assigner = BucketAssigner.date_time_bucket_assigner(timezone_id="UTC")
    assert assigner.get_bucket_id("x", BucketContext(None, 1_612_321_506_000, 0)) == "2021-02-03--03"
    other = BucketAssigner.date_time_bucket_assigner("'day='yyyyMMdd/HH'h'mm", "Europe/Berlin")
    assert other.get_bucket_id("x", BucketContext(None, 1_612_321_506_000, 0)) == "day=20210203/04h05"
    assert FileSink.for_row_format("/tmp/x", ENCODER).build().bucket_assigner == DateTimeBucketAssigner()
    with pytest.raises(ValueError, match="has 'EEE'; use yyyy"):
        BucketAssigner.date_time_bucket_assigner("EEE")
    with pytest.raises(ValueError, match="no time zone 'Mars/North'"):
        BucketAssigner.date_time_bucket_assigner(timezone_id="Mars/North")


def test_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="absolute path of a local folder"):
        FileSink.for_row_format("s3://bucket/x", ENCODER)
    with pytest.raises(TypeError, match=r"use Encoder.simple_string_encoder\(\)"):
        FileSink.for_row_format(str(tmp_path), "UTF-8")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="use BucketAssigner"):
        _builder(tmp_path).with_bucket_assigner("hour")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="without '/'"):
        OutputFileConfig("a/b", "")
    with pytest.raises(ValueError, match="part_size must be at least 1"):
        RollingPolicy.default_rolling_policy(part_size=0)
    builder = StreamingFileSink.for_row_format(str(tmp_path), ENCODER).with_bucket_check_interval(5)
    assert isinstance(builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build(), StreamingFileSink)
