"""Formats of query results: the same bytes, or rows, however the result comes in parts."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.host.queries import rendering
from airflow_pipelines.host.queries.rendering import FORMATS, NotRepresentableError

WHOLE = pa.table({"id": range(2500), "name": [None if n % 7 == 0 else f"name {n}" for n in range(2500)]})


def parts(rows: int) -> Iterator[pa.Table]:
    return iter([WHOLE.slice(begin, rows) for begin in range(0, WHOLE.num_rows, rows)])


@pytest.mark.parametrize("name", ["text", "json", "hash"])
def test_text_does_not_depend_on_the_parts(name: str) -> None:
    render = FORMATS[name].render
    assert b"".join(render(parts(300))) == b"".join(render(iter([WHOLE])))


def test_numbers_that_are_not_finite_have_their_names_and_differ_from_null() -> None:
    values = pa.array([1.5, float("nan"), float("inf"), -float("inf"), None])
    rows = pa.table({"d": values, "r": values.cast(pa.float32()), "a": pa.array([[value] for value in values.to_pylist()])})
    lines = b"".join(FORMATS["text"].render(iter([rows]))).decode().splitlines()[3:-1]
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in lines] == [
        ["1.5", "1.5", "[1.5]"],
        ["NaN", "NaN", "[NaN]"],
        ["Infinity", "Infinity", "[Infinity]"],
        ["-Infinity", "-Infinity", "[-Infinity]"],
        ["", "", "[null]"],
    ]
    hashes = {b"".join(FORMATS["hash"].render(iter([rows.slice(number, 1)]))) for number in range(5)}
    assert len(hashes) == 5


def test_files_have_the_rows_of_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "ROW_GROUP_BYTES", 10_000)
    made = list(FORMATS["parquet"].render(parts(100)))
    # As soon as a row group is complete it is sent.
    assert len(made) > 2
    file = pq.ParquetFile(io.BytesIO(b"".join(made)))
    assert file.read().equals(WHOLE)
    assert file.metadata.num_row_groups >= len(made) - 1
    sent = list(FORMATS["arrow_ipc"].render(parts(100)))
    assert len(sent) == 25 + 1, "the last part is the mark of the end"
    assert pa.ipc.open_stream(b"".join(sent)).read_all().equals(WHOLE)


@pytest.mark.parametrize("name", ["text", "json", "parquet", "arrow_ipc"])
def test_what_is_sent_needs_only_the_parts_so_far(name: str) -> None:
    taken = 0

    def counted() -> Iterator[pa.Table]:
        nonlocal taken
        for _ in range(10_000):
            taken += 1
            yield pa.table({"x": pa.array(range(10000, 15000), pa.int64())})

    body = FORMATS[name].render(counted())
    for _ in range(3):
        assert next(body)
    # A Parquet file is sent by row groups.
    per_part = rendering.ROW_GROUP_BYTES // (5000 * 8) + 2 if name == "parquet" else 1
    assert taken <= 3 * per_part + 1


def test_an_empty_result_has_columns() -> None:
    empty = WHOLE.schema.empty_table()
    assert b"".join(FORMATS["json"].render(iter([empty]))) == b""
    assert pq.read_table(io.BytesIO(b"".join(FORMATS["parquet"].render(iter([empty]))))).equals(empty)
    assert pa.ipc.open_stream(b"".join(FORMATS["arrow_ipc"].render(iter([empty])))).read_all().equals(empty)


def test_a_box_ends_where_a_wider_one_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "LINES_AT_ONCE", 2)
    rows = pa.table({"n": [1, 2, 3, 400], "s": ["a\nb", None, "", "x" * 70]})
    assert b"".join(FORMATS["text"].render(iter([rows.slice(0, 1), rows.slice(1)]))).decode().splitlines() == [
        "+---+------+",
        "| n | s    |",
        "+---+------+",
        "| 1 | a\\nb |",
        "| 2 |      |",
        "+---+------+",
        "+-----+------------------------------------------------------------------+",
        "| n   | s                                                                |",
        "+-----+------------------------------------------------------------------+",
        "| 3   |                                                                  |",
        f"| 400 | {'x' * 61}... |",
        "+-----+------------------------------------------------------------------+",
    ]
    assert (
        b"".join(FORMATS["text"].render(iter([rows.schema.empty_table()]))).decode()
        == "+---+---+\n| n | s |\n+---+---+\n+---+---+\n"
    )


def test_json_has_no_maps_whose_keys_are_no_texts() -> None:
    for kind in (pa.map_(pa.int32(), pa.string()), pa.list_(pa.map_(pa.date32(), pa.string()))):
        with pytest.raises(NotRepresentableError, match="keys"):
            list(FORMATS["json"].render(iter([pa.table({"m": pa.array([None], kind)})])))
    texts = pa.table({"m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32()))})
    assert b"".join(FORMATS["json"].render(iter([texts]))) == b'{"m":{"k":1}}\n'


def test_a_body_says_in_its_last_line_why_it_broke_off() -> None:
    why = Problem(ErrorCode.AD_HOC_QUERY_ERROR, "why\nand where")
    said = {name: one.failure(why) for name, one in FORMATS.items() if one.failure is not None}
    assert said.keys() == {"text", "json"}
    assert json.loads(said["json"]) == {"error": why.message}
    assert said["text"] == b"ERROR: why and where\n"
