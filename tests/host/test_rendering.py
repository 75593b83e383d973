"""Formats of query results: the same bytes, or rows, however the result comes in parts."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.engine.spark.collecting import ResultTooLargeError
from airflow_pipelines.host import rendering
from airflow_pipelines.host.rendering import FORMATS, limited

WHOLE = pa.table({"id": range(2500), "name": [None if n % 7 == 0 else f"name {n}" for n in range(2500)]})


def parts(rows: int) -> Iterator[pa.Table]:
    return iter([WHOLE.slice(begin, rows) for begin in range(0, WHOLE.num_rows, rows)])


@pytest.mark.parametrize("name", ["text", "json", "hash"])
def test_text_does_not_depend_on_the_parts(name: str) -> None:
    render = FORMATS[name].render
    assert b"".join(render(parts(300))) == b"".join(render(iter([WHOLE])))


def test_files_have_the_rows_of_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "ROW_GROUP_BYTES", 10_000)
    made = list(FORMATS["parquet"].render(parts(100)))
    # As soon as a row group is complete it is sent.
    assert len(made) > 2
    file = pq.ParquetFile(io.BytesIO(b"".join(made)))
    assert file.read().equals(WHOLE)
    assert file.metadata.num_row_groups >= len(made) - 1
    sent = list(FORMATS["arrow_ipc"].render(parts(100)))
    assert len(sent) == 25
    assert pa.ipc.open_stream(b"".join(sent)).read_all().equals(WHOLE)


@pytest.mark.parametrize("name", ["json", "parquet", "arrow_ipc"])
def test_what_is_sent_needs_only_the_parts_so_far(name: str) -> None:
    taken = 0

    def counted() -> Iterator[pa.Table]:
        nonlocal taken
        for _ in range(10_000):
            taken += 1
            yield pa.table({"x": pa.array(range(5000), pa.int64())})

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


def test_only_what_is_collected_is_limited() -> None:
    assert [name for name, one in FORMATS.items() if not one.streams] == ["text"]
    assert sum(table.num_rows for table in limited(parts(100), WHOLE.nbytes * 2)) == WHOLE.num_rows
    with pytest.raises(ResultTooLargeError):
        list(limited(parts(100), 1000))


def test_a_body_says_in_its_last_line_why_it_broke_off() -> None:
    from airflow_pipelines.contract.error_codes import ErrorCode
    from airflow_pipelines.contract.problems import Problem

    failure = FORMATS["json"].failure
    assert failure is not None
    assert json.loads(failure(Problem(ErrorCode.AD_HOC_QUERY_ERROR, "why"))) == {"error": "why"}
