"""A real host, killed at named points of a transaction's commit and of a bootstrap: all or nothing, and nothing twice."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.chaos.points import Moment, Point
from tools.chaos.process import HostDied, HostProcess

pytestmark = pytest.mark.integration

BOOTSTRAP = (
    Point("host.steps.recovery", "Recovery.restore", Moment.AFTER),
    Point("engine.circuit", "Circuit.bootstrap", Moment.AFTER),
    Point("connectors.transports.files.line_output", "FileOutput.write", Moment.AFTER),
    Point("host.checkpoints.durability", "Durability.save_recovery_point", Moment.BEFORE),
    Point("engine.storage.journal", "Journal.discard", Moment.BEFORE),
)
"""From the restored state to what makes the new program the saved one."""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostProcess]:
    process = HostProcess(tmp_path, {"fault_tolerance": {"model": "exactly_once", "checkpoint_interval_secs": None}})
    yield process
    process.kill()


def program(folder: Path, variant: int) -> str:
    transport = {"name": "file_output", "config": {"path": str(folder / "out.csv")}}
    out = json.dumps([{"name": "out", "transport": transport, "format": {"name": "csv"}}])
    return (
        "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, v BIGINT) WITH ('materialized' = 'true');"
        "CREATE MATERIALIZED VIEW kept AS SELECT COUNT(*) AS n, SUM(v) AS total FROM t;"
        f"CREATE MATERIALIZED VIEW changed WITH ('connectors' = '{out}') AS SELECT id, v + {variant} AS v FROM t;"
    )


def push(host: HostProcess, *rows: tuple[int, int]) -> None:
    lines = "\n".join(json.dumps({"insert": {"id": key, "v": value}}) for key, value in rows)
    assert host.call("POST", "/ingress/t", params={"format": "json"}, content=lines).status_code == 200


def commit_transaction(host: HostProcess) -> None:
    """One transaction of two requests, whose commit the host does not survive."""
    assert host.call("POST", "/start_transaction").status_code == 200
    push(host, (2, 20), (3, 30))
    push(host, (1, 11))
    assert host.call("POST", "/commit_transaction").status_code == 200
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        host.call("GET", "/stats")
        time.sleep(0.02)


@pytest.mark.timeout(600)
def test_kills_within_a_commit_and_within_a_bootstrap(host: HostProcess, tmp_path: Path) -> None:
    append = "engine.storage.journal", "Journal.append"
    host.start(program(tmp_path, 0), Point(*append, Moment.BEFORE), call=2)
    assert host.call("GET", "/query", params={"sql": "INSERT INTO t VALUES (1, 10)"}).status_code == 200
    with pytest.raises(HostDied):
        commit_transaction(host)
    host.kill()

    host.start(program(tmp_path, 0), Point(*append, Moment.AFTER), call=2)
    assert host.query("SELECT * FROM t") == [{"id": 1, "v": 10}], "nothing of the transaction was committed"
    push(host, (4, 40))
    with pytest.raises(HostDied):
        commit_transaction(host)
    host.kill()

    for variant, point in enumerate(BOOTSTRAP, start=1):
        with pytest.raises(HostDied):
            host.start(program(tmp_path, variant), point)
        host.kill()

    host.start(program(tmp_path, 9))
    rows = {1: 11, 2: 20, 3: 30, 4: 40}
    assert host.query("SELECT * FROM t ORDER BY id") == [{"id": key, "v": value} for key, value in rows.items()]
    assert host.query("SELECT * FROM kept") == [{"n": 4, "total": 101}]
    changed = [{"id": key, "v": value + 9} for key, value in rows.items()]
    assert host.query("SELECT * FROM changed ORDER BY id") == changed
    # A bootstrap that was not saved is taken back; the one that was saved at the last of the points is there, without the program
    # having run. A view that has changed takes nothing back of what its earlier query sent, and sends what that one has yet to send
    # before its own contents: the row of the step before the transaction, and the transaction, committed and not delivered.
    written: Counter[str] = Counter()
    for line in (tmp_path / "out.csv").read_text().splitlines():
        row, _, weight = line.rpartition(",")
        written[row] += int(weight)
    assert +written == Counter(f"{key},{value + variant}" for variant in (0, len(BOOTSTRAP), 9) for key, value in rows.items())
    assert min(written.values()) >= 0
