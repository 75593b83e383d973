"""What the output writes, read by Iceberg's own library: no code of it has anything in common with what wrote."""

from __future__ import annotations

import datetime as dt
import subprocess
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.connectors.relations import NESTED, SCALARS, relation
from tests.connectors.transports.iceberg.tables import changes, output, table
from tools.maven import NoJarsError, jars

KEY = ("id",)
PROGRAM = Path(__file__).with_name("ReadIceberg.java")


@pytest.fixture(scope="module")
def class_path(processes: None) -> str:
    """Where Java finds Iceberg, and what it needs of Hadoop."""
    try:
        folder = jars("iceberg")
    except NoJarsError as error:
        pytest.skip(f"Iceberg's library cannot be had: {error}")
    return f"{folder}/*:{Path(pyspark.__file__).parent}/jars/*"


def read(folder: Path, class_path: str) -> tuple[list[str], str]:
    """The rows of the table, in order, and the summary of its newest snapshot."""
    location = table(folder).metadata_location
    done = subprocess.run(
        ["java", "-cp", class_path, str(PROGRAM), location], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    *rows, summary = done.stdout.splitlines()
    return sorted(row.removeprefix("row ") for row in rows), summary


def test_a_merged_table_and_a_change_log(tmp_path: Path, class_path: str) -> None:
    for write in ("merged", "change_log"):
        folder = tmp_path / write
        folder.mkdir()
        sink = output(folder, write=write, key=KEY)
        sink.write(1, changes((1, "a", 1), (2, None, 1), (3, "c", 1), key=KEY))
        sink.write(2, changes((1, "a", -1), (1, "A", 1), (2, None, -1), key=KEY))
        rows, summary = read(folder, class_path)
        assert "airflow-pipelines.step=2" in summary
        if write == "merged":
            assert rows == ["Record(1, A)", "Record(3, c)"]
        else:
            assert [row.rpartition(",")[0] for row in rows] == [
                "Record(1, A, u",
                "Record(1, a, i",
                "Record(2, null, d",
                "Record(2, null, i",
                "Record(3, c, i",
            ]


def test_all_types_after_steps_that_were_taken_back(tmp_path: Path, class_path: str) -> None:
    of = relation(*SCALARS.columns, *(column for column in NESTED.columns if column.name != "v"), name="v")
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 6)
    nested = (b"\x01", [1, None], [(7, Decimal("1.25"))], {"x": at.date(), "y": ["z"]})

    def row(key: int, text: str, weight: int) -> tuple[Any, ...]:
        scalars = (
            True,
            1,
            2,
            3,
            key,
            1.5,
            2.5,
            Decimal("1.125"),
            text,
            "abc",
            at.date(),
            at.time(),
            at,
            at.replace(tzinfo=dt.UTC),
            "u",
        )
        return (*scalars, *nested, weight)

    sink = output(tmp_path, write="merged", key=("i64",), of=of)
    sink.write(1, changes(row(1, "a", 1), row(2, "b", 1), key=("i64",), of=of))
    sink.write(2, changes(row(1, "a", -1), row(2, "b", -1), row(2, "gone", 1), key=("i64",), of=of))
    again = output(tmp_path, write="merged", key=("i64",), of=of, resumed=True)
    again.rewind(1)
    again.write(2, changes(row(2, "b", -1), row(2, "B", 1), key=("i64",), of=of))
    rows, summary = read(tmp_path, class_path)
    assert "airflow-pipelines.step=2" in summary
    same = "abc, 2024-01-02, 03:04:05.000006, 2024-01-02T03:04:05.000006, 2024-01-02T03:04:05.000006Z, u"
    assert [found.partition(", java.nio")[0] for found in rows] == [
        f"Record(true, 1, 2, 3, {key}, 1.5, 2.5, 1.125, {text}, {same}" for key, text in ((1, "a"), (2, "B"))
    ]
    assert all(found.endswith("[1, null], {7=1.25}, Record(2024-01-02, [z]))") for found in rows)
