"""Files and what HTTP servers answer, in and out."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_pipelines.connectors.transports import http_file, http_output, pipeline_input, url_input
from tests.connectors.conformance.inputs import InputCase, InputConformance
from tests.connectors.conformance.outputs import STEPS, OutputCase, OutputConformance, total
from tests.connectors.relations import col, relation
from tests.connectors.services import FollowedView

ROWS = [{"id": number, "name": f"n{number}"} for number in range(20)]


def json_lines(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


class TestJsonFiles(InputConformance):
    @pytest.fixture
    def case(self, tmp_path: Path) -> InputCase:
        made = InputCase()
        made.transport, made.config = "file_input", {"path": str(tmp_path / "data"), "buffer_size_bytes": 50}
        made.format, made.format_config = "json", {"update_format": "raw", "lines": "single"}
        made.rows = ROWS
        made.malformed = {3: "second.json: "}
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "first.json").write_text(json_lines(ROWS[:8]))
        broken = json_lines(ROWS[8:11]) + '{"id": "many"}\n' + json_lines(ROWS[11:])
        (tmp_path / "data" / "second.json").write_text(broken)
        return made


class TestCsvFile(InputConformance):
    @pytest.fixture
    def case(self, tmp_path: Path) -> InputCase:
        made = InputCase()
        made.transport, made.config = "file_input", {"path": str(tmp_path / "data.csv"), "buffer_size_bytes": 16}
        made.format, made.format_config = "csv", {"headers": True}
        made.rows = ROWS
        made.malformed = {4: "id"}
        lines = [f"{row['id']},{row['name']}\n" for row in ROWS]
        (tmp_path / "data.csv").write_text("".join(["id,name\n", *lines[:2], "x,y\n", *lines[2:]]))
        return made


class TestParquetFile(InputConformance):
    @pytest.fixture
    def case(self, tmp_path: Path) -> InputCase:
        made = InputCase()
        made.transport, made.config, made.format = "file_input", {"path": str(tmp_path / "data.parquet")}, "parquet"
        made.rows = ROWS
        pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "data.parquet", row_group_size=6)
        return made


class TestFollowedFile(InputConformance):
    @pytest.fixture
    def case(self, tmp_path: Path) -> InputCase:
        made = InputCase()
        made.transport, made.config = "file_input", {"path": str(tmp_path / "data.json"), "follow": True}
        made.format, made.format_config = "json", {"update_format": "raw"}
        made.rows, made.ends = ROWS, False
        (tmp_path / "data.json").write_text(json_lines(ROWS))
        return made


class _Served(InputCase):
    transport = "url_input"
    format = "json"
    can_be_away = True

    def __init__(self) -> None:
        self.is_there = True

    def take_away(self) -> None:
        self.is_there = False

    def bring_back(self) -> None:
        self.is_there = True

    def answer(self, request: httpx.Request) -> httpx.Response:
        if not self.is_there:
            raise httpx.ConnectError("nobody listens")
        content = json_lines(ROWS).encode()
        begin = int(request.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        return httpx.Response(206 if begin else 200, content=content[begin:]) if begin < len(content) else httpx.Response(416)


class TestUrlInput(InputConformance):
    @pytest.fixture
    def case(self, monkeypatch: pytest.MonkeyPatch) -> InputCase:
        made = _Served()
        made.config, made.format_config, made.rows = {"path": "http://data.example/rows.json"}, {"update_format": "raw"}, ROWS
        monkeypatch.setattr(url_input, "new_client", lambda: httpx.Client(transport=httpx.MockTransport(made.answer)))
        monkeypatch.setattr(http_file, "_RETRIES", replace(http_file._RETRIES, first_wait_s=0.001))
        return made


class _Posted(OutputCase):
    transport = "http_output"
    format = "json"
    can_be_away = True

    def __init__(self) -> None:
        self.config = {"path": "http://hook.example/changes"}
        self.is_there = True
        self._taken: dict[str, bytes] = {}

    def take_away(self) -> None:
        self.is_there = False

    def bring_back(self) -> None:
        self.is_there = True

    def answer(self, request: httpx.Request) -> httpx.Response:
        if not self.is_there:
            raise httpx.ConnectError("nobody listens")
        self._taken.setdefault(request.headers["Idempotency-Key"], request.content)
        return httpx.Response(204)

    def contents(self) -> Counter[tuple[int, str]]:
        left: Counter[tuple[int, str]] = Counter()
        for line in b"".join(self._taken.values()).splitlines():
            ((kind, row),) = json.loads(line).items()
            left[row["id"], row["name"]] += 1 if kind == "insert" else -1
        return +left


class TestHttpOutput(OutputConformance):
    @pytest.fixture
    def case(self, monkeypatch: pytest.MonkeyPatch) -> OutputCase:
        made = _Posted()
        monkeypatch.setattr(http_output, "new_client", lambda _: httpx.Client(transport=httpx.MockTransport(made.answer)))
        monkeypatch.setattr(http_output, "_RETRIES", replace(http_output._RETRIES, first_wait_s=0.001))
        return made


class _Followed(InputCase):
    transport = "pipeline_input"
    ends = False
    can_be_away = True
    keeps_places_in_transactions = False

    def __init__(self) -> None:
        self.view = FollowedView(relation(col("id", "BIGINT"), col("name", "VARCHAR"), name="v"))
        self.rows = ROWS[:10]
        self.config = {"url": "http://service.example:8080", "pipeline": "shop", "view": "v"}
        for row in self.rows:
            self.view.step(((row["id"], row["name"]), 1))

    def take_away(self) -> None:
        self.view.is_there = False

    def bring_back(self) -> None:
        self.view.is_there = True


class TestPipelineInput(InputConformance):
    @pytest.fixture
    def case(self, monkeypatch: pytest.MonkeyPatch) -> InputCase:
        made = _Followed()
        monkeypatch.setattr(pipeline_input, "new_client", made.view.client)
        return made


class _Lines(OutputCase):
    transport = "file_output"
    format = "json"

    def __init__(self, path: Path) -> None:
        self.config = {"path": str(path)}
        self.positions = path.parent / "storage"
        self._path = path

    def contents(self) -> Counter[tuple[int, str]]:
        left: Counter[tuple[int, str]] = Counter()
        for line in self._path.read_text().splitlines():
            ((kind, row),) = json.loads(line).items()
            left[row["id"], row["name"]] += 1 if kind == "insert" else -1
        return +left


class TestFileOutput(OutputConformance):
    @pytest.fixture
    def case(self, tmp_path: Path) -> OutputCase:
        return _Lines(tmp_path / "out.json")


class _Folder(OutputCase):
    transport = "file_output"
    format = "parquet"

    def __init__(self, folder: Path) -> None:
        self.config = {"path": f"{folder}/"}
        self._folder = folder

    def contents(self) -> Counter[tuple[int, str]]:
        left: Counter[tuple[int, str]] = Counter()
        for file in self._folder.glob("*.parquet"):
            for row in pq.read_table(file).to_pylist():
                left[row["id"], row["name"]] += 1 if row["__op"] == "i" else -1
        return +left


class TestFolderOfFiles(OutputConformance):
    @pytest.fixture
    def case(self, tmp_path: Path) -> OutputCase:
        return _Folder(tmp_path / "changes")


class _Nothing(OutputCase):
    transport = "null_output"
    takes_texts_that_are_none = True

    def contents(self) -> Counter[tuple[int, str]]:
        return total(STEPS)


class TestNullOutput(OutputConformance):
    @pytest.fixture
    def case(self) -> OutputCase:
        return _Nothing()
