"""A pipeline that writes through the connector of another package."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.connectors.conformance.sqlite_case import SqliteCase
from tests.host.driver import Make


@pytest.mark.core
@pytest.mark.usefixtures("sqlite_connector")
def test_a_pipeline_writes_through_it(make: Make, tmp_path: Path) -> None:
    case = SqliteCase(tmp_path)
    connectors = json.dumps([{"name": "out", "index": "by_id", "transport": {"name": "sqlite_output", "config": case.config}}])
    pipeline = make(
        "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR);"
        f"CREATE VIEW v WITH ('connectors' = '{connectors}') AS SELECT id, upper(name) AS name FROM t;"
        "CREATE INDEX by_id ON v(id);",
        fault_tolerance={"model": "exactly_once"},
    )
    pipeline.start()
    pipeline.insert("t", {"id": 1, "name": "a"}, {"id": 2, "name": "b"})
    pipeline.insert("t", {"id": 2, "name": "c"})
    assert case.contents() == Counter([(1, "A"), (2, "C")])
    pipeline.kill()
    pipeline.start()
    pipeline.ingest("t", {"delete": {"id": 1}})
    assert case.contents() == Counter([(2, "C")])
