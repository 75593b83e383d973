"""Writing changes to a file, and taking back what a restart will write again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_pipelines.connectors.base import ConnectorFailure
from airflow_pipelines.connectors.changes import ChangesInMemory
from airflow_pipelines.connectors.transports import step_ends
from airflow_pipelines.connectors.transports.files.line_output import FileOutput
from airflow_pipelines.connectors.transports.null_output import NullOutput
from airflow_pipelines.rows.formats.csv import CsvOptions
from airflow_pipelines.rows.formats.flavors import JsonFlavor
from airflow_pipelines.rows.formats.json import JsonOptions


def delta(*rows: tuple[int, str | None, int]) -> ChangesInMemory:
    numbers, names, weights = zip(*rows, strict=True) if rows else ((), (), ())
    types = {"id": pa.int64(), "name": pa.string(), "__weight": pa.int64()}
    columns = zip(types.values(), (numbers, names, weights), strict=True)
    return ChangesInMemory(pa.table([pa.array(values, kind) for kind, values in columns], names=list(types)))


def output(path: Path, *, resumed: bool = False, csv: bool = False) -> FileOutput:
    sink = FileOutput(str(path), CsvOptions() if csv else JsonOptions(), positions(path))
    sink.open(resumed)
    return sink


def positions(path: Path) -> Path:
    """Where the pipeline's storage is, beside the folder of the output."""
    return path.parent.parent / f"{path.parent.name}-storage" / "outputs" / "v.out.steps"


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


@pytest.mark.parametrize("torn", ["data", "position", "both"])
def test_what_a_crash_left_unfinished_is_removed(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "out"
    sink = output(path)
    sink.write(1, delta((1, "x", 1)))
    sink.close()
    if torn != "position":
        with path.open("a") as file:
            file.write('{"insert":{"id":2')
    if torn != "data":
        with positions(path).open("a") as file:
            file.write("2 ")
    sink = output(path, resumed=True)
    sink.write(2, delta((2, "x", 1)))
    assert ids(path) == [1, 2]


def test_only_the_newest_positions_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_ends, "KEPT_STEPS", 3)
    sink = output(tmp_path / "out")
    for step in range(20):
        sink.write(step, delta((step, "x", 1)))
    assert len(positions(tmp_path / "out").read_text().splitlines()) <= 6
    with pytest.raises(ConnectorFailure, match="no longer says where step 2 ended"):
        sink.rewind(2)
    assert ids(tmp_path / "out") == list(range(20))


def test_nothing_lies_beside_the_file(tmp_path: Path) -> None:
    output(tmp_path / "folder" / "out").write(1, delta((1, "x", 1)))
    assert [found.name for found in (tmp_path / "folder").iterdir()] == ["out"]


def test_positions_of_an_earlier_release_are_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "out"
    line = '{"insert":{"id":%d,"name":"x"}}\n'
    path.write_text(line % 1 + line % 2)
    (tmp_path / "out.steps").write_text(f"-1 0\n1 {len(line % 1)}\n2 {len(line % 1) * 2}\n")
    sink = output(path, resumed=True)
    sink.rewind(1)
    sink.write(2, delta((20, "x", 1)))
    assert ids(path) == [1, 20]
    assert not (tmp_path / "out.steps").exists()


def test_without_positions_nothing_is_written_twice(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = output(path)
    sink.write(1, delta((1, "x", 1)))
    sink.close()
    positions(path).unlink()
    before = path.read_bytes()
    with pytest.raises(ConnectorFailure, match=r"does not say which steps this file holds.*Move it away"):
        output(path, resumed=True)
    assert path.read_bytes() == before
    path.rename(tmp_path / "away")
    sink = output(path, resumed=True)
    sink.write(2, delta((2, "x", 1)))
    assert ids(path) == [2]


def test_two_outputs_never_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    first = output(path)
    first.write(1, delta((1, "x", 1)))
    for resumed in (False, True):
        second = FileOutput(str(path), JsonOptions(), tmp_path / "other" / "w.out.steps")
        with pytest.raises(ConnectorFailure, match=r"/out: another output writes this file"):
            second.open(resumed)
    first.write(2, delta((2, "x", 1)))
    assert ids(path) == [1, 2]
    first.close()
    second.open(False)
    second.write(1, delta((7, "x", 1)))
    assert ids(path) == [7]


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        ("delete", "somebody deleted the file"),
        ("replace", "somebody replaced the file"),
        ("shorten", r"it has 5 bytes and had \d+ after step 1"),
    ],
)
def test_what_others_do_to_a_file_is_noticed_by_the_next_step(tmp_path: Path, harm: str, says: str) -> None:
    path = tmp_path / "out"
    sink = output(path)
    sink.write(1, delta((1, "x", 1)))
    harmed(path, harm)
    with pytest.raises(ConnectorFailure, match=says):
        sink.write(2, delta((2, "x", 1)))


@pytest.mark.parametrize(("harm", "says"), [("delete", "the file is gone, which had"), ("shorten", "it has 5 bytes and had")])
def test_what_others_do_to_a_file_is_noticed_by_the_next_start(tmp_path: Path, harm: str, says: str) -> None:
    path = tmp_path / "out"
    sink = output(path)
    sink.write(1, delta((1, "x", 1)))
    sink.close()
    harmed(path, harm)
    with pytest.raises(ConnectorFailure, match=says):
        output(path, resumed=True).rewind(1)
    sink = output(path)
    sink.write(1, delta((1, "x", 1)))
    assert ids(path) == [1]


def test_a_file_that_was_cut_goes_on_from_a_step_that_it_still_has(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = output(path)
    lengths = {}
    for step in (1, 3, 4):
        sink.write(step, delta((step, "x", 1)))
        lengths[step] = path.stat().st_size
    with path.open("r+") as file:
        file.truncate(lengths[1] + 7)
    with pytest.raises(ConnectorFailure, match=rf"it has {lengths[1] + 7} bytes and had {lengths[4]} after step 4"):
        sink.write(5, delta((5, "x", 1)))
    sink.close()
    for newest in (4, 3):
        again = output(path, resumed=True)
        with pytest.raises(ConnectorFailure, match=rf"it has {lengths[1] + 7} bytes and had {lengths[newest]} after step {newest}"):
            again.rewind(newest)
        again.close()
    again = output(path, resumed=True)
    again.rewind(2)
    assert ids(path) == [1]
    again.write(3, delta((30, "x", 1)))
    assert ids(path) == [1, 30]


def harmed(path: Path, harm: str) -> None:
    if harm == "shorten":
        with path.open("r+") as file:
            file.truncate(5)
        return
    content = path.read_bytes()
    path.unlink()
    if harm == "replace":
        path.write_bytes(content)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConnectorFailure, match=r"cannot write .*file/out"):
        output(tmp_path / "file" / "out")


def test_null_output_counts() -> None:
    sink: Any = NullOutput()
    sink.open(False)
    assert sink.write(1, delta((1, "x", 2), (2, "y", -3))) == (5, 0)
    assert sink.write(2, delta()) == (0, 0)
    sink.close()


def test_json_in_the_form_of_others(tmp_path: Path) -> None:
    path = tmp_path / "v.out"
    options = JsonOptions(update_format="weighted", json_flavor=JsonFlavor.SNOWFLAKE, array=True, buffer_size_records=2)
    sink = FileOutput(str(path), options, positions(path))
    sink.open(False)
    for step in (1, 2):
        sink.write(step, delta((step, "a", 1), (step, "b", 1), (step, "c", 1)))
    sink.close()
    arrays = [json.loads(line) for line in path.read_text().splitlines()]
    assert [[change["data"]["name"] for change in array] for array in arrays] == [["a", "b"], ["c"]] * 2
