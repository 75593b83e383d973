"""Programs of the pages about connectors for files, tables in files and HTTP, run as they stand but for where things are."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.connectors.transports.iceberg.tables import rows
from tests.fixtures.s3 import Bucket
from tests.host.driver import Pipeline

DOCS = Path(__file__).parents[2] / "docs"
EXACTLY_ONCE = {"model": "exactly_once", "checkpoint_interval_secs": None}


def programs(page: str, section: str = "") -> list[str]:
    """The SQL of a page from a heading on."""
    text = (DOCS / page).read_text().partition(section)[2]
    return re.findall(r"```sql\n(.*?)```", text, re.DOTALL)


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_iceberg(make: Callable[..., Pipeline], tmp_path: Path) -> None:
    writing, reading = (text.replace("/tmp/lake", str(tmp_path)) for text in programs("iceberg.md", "# Iceberg"))
    writer = make(writing, fault_tolerance=EXACTLY_ONCE)
    writer.start()
    orders = [{"id": n, "customer": "anna" if n % 2 else "bob", "amount": n} for n in range(1, 5)]
    writer.insert("orders", *orders)
    wait_for(lambda: len(rows(tmp_path, "sales.totals")) == 2)
    reader = make(reading, fault_tolerance=EXACTLY_ONCE)
    reader.start()
    wait_for(lambda: reader.query("SELECT * FROM largest") == [{"total": 6}])
    # Both are killed; what happens meanwhile is there afterwards, once.
    reader.kill()
    writer.ingest("orders", {"delete": {"id": 4}}, {"insert": {"id": 9, "customer": "carl", "amount": 100}})
    writer.kill()
    writer.start()
    writer.ingest("orders", {"delete": {"id": 2}})
    wait_for(lambda: {row[0] for row in rows(tmp_path, "sales.totals")} == {"anna", "carl"})
    reader.start()
    wait_for(lambda: reader.query("SELECT * FROM largest") == [{"total": 100}])
    assert reader.query("SELECT customer, orders FROM totals ORDER BY customer") == [
        {"customer": "anna", "orders": 2},
        {"customer": "carl", "orders": 1},
    ]
    outputs = writer.stats()["outputs"]
    assert outputs[0]["health"]["status"] == "Healthy"


def test_delta(make: Callable[..., Pipeline], tmp_path: Path) -> None:
    reading, writing = (text.replace("/tmp/lake", str(tmp_path)) for text in programs("delta.md", "# Delta"))
    at = [dt.datetime(2024, 1, day) for day in range(1, 5)]
    amounts = [decimal.Decimal(10 * day) for day in range(4)]
    table = pa.table({"id": [1, 2, 3, 4], "customer": ["anna", "bob", "anna", "bob"], "amount": amounts, "at": at})
    write_deltalake(str(tmp_path / "orders"), table)
    reader = make(reading, fault_tolerance=EXACTLY_ONCE)
    reader.start()
    by_customer = "SELECT * FROM by_customer ORDER BY customer"
    wait_for(lambda: reader.query(by_customer) == [{"customer": "anna", "total": 20.0}, {"customer": "bob", "total": 40.0}])
    # It is killed; what the table gains and loses meanwhile is there afterwards, once.
    reader.kill()
    DeltaTable(str(tmp_path / "orders")).delete("id = 2")
    write_deltalake(str(tmp_path / "orders"), table.slice(3), mode="append")
    reader.start()
    wait_for(lambda: reader.query(by_customer) == [{"customer": "anna", "total": 20.0}, {"customer": "bob", "total": 60.0}])
    writer = make(writing, fault_tolerance=EXACTLY_ONCE)
    writer.start()
    writer.insert("orders", {"id": 1, "customer": "anna", "amount": 5}, {"id": 2, "customer": "bob", "amount": 1})
    writer.ingest("orders", {"delete": {"id": 2}})
    writer.kill()
    writer.start()
    writer.ingest("orders", {"insert": {"id": 1, "customer": "anna", "amount": 7}})
    totals = [{"customer": "anna", "total": decimal.Decimal(7), "orders": 1}]
    wait_for(lambda: DeltaTable(str(tmp_path / "totals")).to_pyarrow_table().to_pylist() == totals)
    log = DeltaTable(str(tmp_path / "totals_log")).to_pyarrow_table().sort_by("__feldera_ts").to_pylist()
    assert [(row["customer"], row["__feldera_op"], row["total"]) for row in log][-2:] == [("bob", "d", 1), ("anna", "u", 7)]


@pytest.mark.core
def test_files(make: Callable[..., Pipeline], tmp_path: Path) -> None:
    (program,) = (text for text in programs("connectors.md", "## file_input") if "/tmp/grades" in text)
    program = program.replace("/tmp/grades", str(tmp_path / "grades")).replace("/tmp/best", str(tmp_path / "best"))
    (tmp_path / "grades").mkdir()
    for number in range(3):
        lines = "student_id,class,grade\n" + "".join(f"{n},c{n % 2},{number * 10 + n}\n" for n in range(5))
        (tmp_path / "grades" / f"{number}.csv.gz").write_bytes(gzip.compress(lines.encode()))
    pipeline = make(program, fault_tolerance=EXACTLY_ONCE)
    pipeline.start()
    pipeline.await_complete()
    snippet = re.findall(r"```python\n(import json.*?)```", (DOCS / "connectors.md").read_text(), re.DOTALL)[0]
    variables: dict[str, Any] = {}
    exec(snippet.replace("/tmp/best", str(tmp_path / "best")), variables)
    state: dict[str, float] = {}
    for name in variables["names"]:
        for row in pq.read_table(tmp_path / "best" / name).to_pylist():
            if row["__op"] == "d":
                assert state.pop(row["class"]) == row["grade"]
            else:
                state[row["class"]] = row["grade"]
    assert state == {"c0": 24, "c1": 23}


def test_objects(make: Callable[..., Pipeline], s3: Callable[[], Bucket]) -> None:
    bucket = s3()
    keys = {"aws_access_key_id": bucket.access_key, "aws_secret_access_key": bucket.secret_key}
    client = boto3.client("s3", endpoint_url=bucket.endpoint, region_name="us-east-1", **keys)
    for number in range(20):
        client.put_object(Bucket=bucket.name, Key=f"grades/{number}.csv", Body=f"{number},c,{number}\n".encode())
    env = {"BUCKET": bucket.name, "S3_ENDPOINT": bucket.endpoint, "S3_KEY": bucket.access_key, "S3_SECRET": bucket.secret_key}
    pipeline = make(programs("connectors.md", "## s3_input")[0], env=env)
    pipeline.start()
    pipeline.await_complete()
    assert pipeline.query("SELECT COUNT(*) AS n, SUM(grade) AS s FROM grades") == [{"n": 20, "s": 190}]
    assert bucket.secret_key not in pipeline.log


@pytest.fixture
def hook() -> Iterator[tuple[str, dict[str, list[Any]]]]:
    """A server that takes changes, each key once, and is busy first."""
    taken: dict[str, list[Any]] = {}
    busy = [True]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = 503 if busy and busy.pop() else 204 if self.headers["Authorization"] == "Bearer s3cret" else 401
            if status == 204:
                taken.setdefault(self.headers["Idempotency-Key"], json.loads(body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook", taken
    server.shutdown()
    server.server_close()


def test_http(make: Callable[..., Pipeline], hook: tuple[str, dict[str, list[Any]]]) -> None:
    url, taken = hook
    program = programs("connectors.md", "## http_output")[0]
    pipeline = make(program, env={"HOOK": url, "HOOK_TOKEN": "s3cret"}, fault_tolerance=EXACTLY_ONCE)
    pipeline.start()
    pipeline.insert("orders", {"id": 1, "customer": "anna", "amount": 5}, {"id": 2, "customer": "bob", "amount": 1})
    pipeline.kill()
    pipeline.start()
    pipeline.ingest("orders", {"delete": {"id": 1}})
    wait_for(lambda: len(taken) == 2)
    assert [change for changes in taken.values() for change in changes] == [
        {"insert": {"customer": "anna", "total": 5.0}},
        {"insert": {"customer": "bob", "total": 1.0}},
        {"delete": {"customer": "anna", "total": 5.0}},
    ]
    assert "s3cret" not in pipeline.log
