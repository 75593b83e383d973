"""What the output writes, read by Iceberg's own library: no code of it has anything in common with what wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyspark
import pytest

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
