"""Tables of lakes, written by and read with their own libraries."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.connectors.conformance.inputs import InputCase, InputConformance
from tests.connectors.conformance.outputs import OutputCase, OutputConformance
from tests.connectors.relations import col, relation
from tests.connectors.transports.delta_table import tables as delta
from tests.connectors.transports.iceberg import tables as iceberg


class _Delta(OutputCase):
    transport = "delta_table_output"

    def __init__(self, folder: Path, key: tuple[str, ...] = ()) -> None:
        self.config, self.key, self._path = {"uri": str(folder / "table"), "write": "merged"}, key, folder / "table"

    def contents(self) -> Counter[tuple[int, str]]:
        return Counter((row[0], row[1]) for row in delta.rows(self._path))


class TestDeltaTableOutput(OutputConformance):
    @pytest.fixture(params=[(), ("id",)], ids=["all columns", "by index"])
    def case(self, tmp_path: Path, request: pytest.FixtureRequest) -> OutputCase:
        return _Delta(tmp_path, request.param)


class _DeltaLog(OutputCase):
    transport = "delta_table_output"

    def __init__(self, folder: Path) -> None:
        self.config, self._path = {"uri": str(folder / "table")}, folder / "table"

    def contents(self) -> Counter[tuple[int, str]]:
        left: Counter[tuple[int, str]] = Counter()
        for number, name, operation, _ in delta.rows(self._path):
            left[number, name] += 1 if operation == "i" else -1
        return +left


class TestDeltaChangeLog(OutputConformance):
    @pytest.fixture
    def case(self, tmp_path: Path) -> OutputCase:
        return _DeltaLog(tmp_path)


class _Iceberg(OutputCase):
    transport = "iceberg_output"

    def __init__(self, folder: Path) -> None:
        self.config = {**iceberg.catalog_of(folder), "table_name": "db.people", "write": "merged"}
        self.key, self._folder = ("id",), folder

    def contents(self) -> Counter[tuple[int, str]]:
        return Counter((row[0], row[1]) for row in iceberg.rows(self._folder))


class TestIcebergOutput(OutputConformance):
    @pytest.fixture
    def case(self, tmp_path: Path) -> OutputCase:
        return _Iceberg(tmp_path)


class TestIcebergInput(InputConformance):
    @pytest.fixture
    def case(self, tmp_path: Path) -> InputCase:
        sink = iceberg.output(tmp_path, write="merged", key=("id",))
        sink.write(1, iceberg.changes(*((number, f"n{number}", 1) for number in range(10)), key=("id",)))
        sink.close()
        made = InputCase()
        made.transport, made.schema = "iceberg_input", relation(col("id", "BIGINT"), col("name", "VARCHAR"), name="t")
        made.config = {**iceberg.catalog_of(tmp_path), "table_name": "db.people", "mode": "snapshot"}
        made.rows = [{"id": number, "name": f"n{number}"} for number in range(10)]
        return made


class TestDeltaTableInput(InputConformance):
    @pytest.fixture(params=["snapshot", "follow"])
    def case(self, tmp_path: Path, request: pytest.FixtureRequest) -> InputCase:
        made = InputCase()
        made.transport, made.rows = "delta_table_input", [{"id": number, "name": f"n{number}"} for number in range(10)]
        sink = delta.merged(tmp_path / "table", key=("id",))
        rows = [(row["id"], row["name"], 1) for row in made.rows]
        for step, some in enumerate((rows[:4], rows[4:5], rows[5:]) if request.param == "follow" else (rows,), 1):
            sink.write(step, delta.changes(*some, key=("id",)))
        sink.close()
        made.config = {"uri": str(tmp_path / "table"), "mode": request.param}
        if request.param == "follow":
            # Changes after the version that opening the output made.
            made.config["version"], made.ends = 0, False
        return made
