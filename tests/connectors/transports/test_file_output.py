"""Writing changes to a file, and taking back what a restart will write again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.formats.csv import CsvOptions
from airflow_pipelines.connectors.formats.json import JsonOptions
from airflow_pipelines.connectors.transports import file_output
from airflow_pipelines.connectors.transports.file_output import FileOutput, FileOutputOptions
from airflow_pipelines.connectors.transports.null_output import NullOutput


def delta(*rows: tuple[int, str | None, int]) -> pa.Table:
    numbers, names, weights = zip(*rows, strict=True)
    return pa.table({"id": pa.array(numbers), "name": pa.array(names, pa.string()), "__weight": pa.array(weights)})


def output(path: Path, *, resumed: bool = False, csv: bool = False) -> FileOutput:
    sink = FileOutput(FileOutputOptions(path=str(path)), CsvOptions() if csv else JsonOptions())
    sink.open(resumed)
    return sink


def ids(path: Path) -> list[int]:
    return [next(iter(json.loads(line).values()))["id"] for line in path.read_text().splitlines()]


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out.json"
    sink = output(path)
    records, size = sink.write(1, delta((2, "b", 1), (1, None, 2), (3, "c", -1)))
    assert path.read_text().splitlines() == [
        '{"delete":{"id":3,"name":"c"}}',
        '{"insert":{"id":1,"name":null}}',
        '{"insert":{"id":1,"name":null}}',
        '{"insert":{"id":2,"name":"b"}}',
    ]
    assert (records, size) == (4, path.stat().st_size)
    sink.close()
    sink.close()


def test_csv_lines_end_with_the_change(tmp_path: Path) -> None:
    sink = output(tmp_path / "out.csv", csv=True)
    sink.write(1, delta((1, "a,b", 1), (2, None, -2)))
    assert (tmp_path / "out.csv").read_text() == '2,,-1\n2,,-1\n1,"a,b",1\n'


def test_a_first_start_begins_anew_and_a_resumed_one_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "out"
    for resumed, expected in ((False, [1]), (True, [1, 1]), (False, [1])):
        sink = output(path, resumed=resumed)
        sink.write(1 if not resumed else 2, delta((1, "a", 1)))
        sink.close()
        assert ids(path) == expected


def test_rewind_takes_back_later_steps(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = output(path)
    for step in (3, 5, 8):
        sink.write(step, delta((step, "x", 1)))
    sink.close()
    sink = output(path, resumed=True)
    sink.rewind(5)
    assert ids(path) == [3, 5]
    sink.write(6, delta((60, "x", 1)))
    sink.rewind(0)
    assert ids(path) == []


def test_a_step_written_again_replaces_itself(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = output(path)
    for step in (1, 2, 3):
        sink.write(step, delta((step, "x", 1)))
    sink.write(2, delta((20, "x", 1)))
    assert ids(path) == [1, 20]


@pytest.mark.parametrize("torn", ["data", "steps", "both"])
def test_what_a_crash_left_unfinished_is_removed(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "out"
    sink = output(path)
    sink.write(1, delta((1, "x", 1)))
    sink.close()
    if torn != "steps":
        with path.open("a") as file:
            file.write('{"insert":{"id":2')
    if torn != "data":
        with (tmp_path / "out.steps").open("a") as file:
            file.write("2 9999999\n")
    sink = output(path, resumed=True)
    sink.write(2, delta((2, "x", 1)))
    assert ids(path) == [1, 2]


def test_the_side_file_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_output, "KEPT_STEPS", 3)
    sink = output(tmp_path / "out")
    for step in range(20):
        sink.write(step, delta((step, "x", 1)))
    assert len((tmp_path / "out.steps").read_text().splitlines()) <= 6
    with pytest.raises(ConnectorFailure, match="no longer says where step 2 ended"):
        sink.rewind(2)
    assert ids(tmp_path / "out") == list(range(20))


def test_a_file_that_was_there_without_its_side_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text('{"insert":{"id":0}}\n')
    sink = output(path, resumed=True)
    sink.write(1, delta((1, "x", 1)))
    sink.rewind(0)
    assert ids(path) == [0]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConnectorFailure, match=r"cannot write .*file/out"):
        output(tmp_path / "file" / "out")


def test_null_output_counts() -> None:
    sink: Any = NullOutput()
    sink.open(False)
    assert sink.write(1, delta((1, "x", 2), (2, "y", -3))) == (5, 0)
    assert sink.write(2, delta((1, "x", 1)).slice(0, 0)) == (0, 0)
    sink.close()
