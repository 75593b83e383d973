from __future__ import annotations

from typing import Any

import pytest

from airflow_pipelines.running.wanted import Wanted, former_values

FILES = {"fraud.py": "import rules", "rules.py": ""}
STORED: dict[str, Any] = {
    "program_code": "create table t (x int) with ('p' = '${secret:pipelines/1/2}')",
    "stream_files": FILES,
    "stream_arguments": ["--day", "1"],
    "runtime_config": {"workers": 8, "fault_tolerance": {"model": "none", "checkpoint_interval_secs": 60}},
}


@pytest.mark.parametrize(
    ("wanted", "changes"),
    [
        (Wanted("p", FILES, ("--day", "1")), {}),
        (Wanted("p", FILES, ("--day", "1"), STORED["program_code"], {"workers": 8}), {}),
        (Wanted("p", FILES), {"stream_arguments": []}),
        (Wanted("p", dict(reversed(FILES.items())), ("--day", "1")), {"stream_files": FILES}),
        (Wanted("p", FILES, ("--day", "1"), ""), {"program_code": ""}),
        (
            Wanted("p", FILES, ("--day", "1"), None, {"fault_tolerance": {"model": "exactly_once"}}),
            {"runtime_config": {"workers": 8, "fault_tolerance": {"model": "exactly_once", "checkpoint_interval_secs": 60}}},
        ),
    ],
)
def test_only_what_differs_changes(wanted: Wanted, changes: dict[str, Any]) -> None:
    assert wanted.changes(STORED) == changes


def test_a_pipeline_of_sql_gets_a_stream_program() -> None:
    sql_only = {name: value for name, value in STORED.items() if not name.startswith("stream_")}
    changes = Wanted("p", FILES, ("x",)).changes(sql_only)
    assert changes == {"stream_files": FILES, "stream_arguments": ["x"]}
    assert former_values(changes, sql_only) == {"stream_files": {}, "stream_arguments": []}


def test_changes_are_taken_back() -> None:
    wanted = Wanted("p", {"fraud.py": "other"}, (), "create table t (x bigint)")
    assert former_values(wanted.changes(STORED), STORED) == {
        "stream_files": FILES,
        "stream_arguments": ["--day", "1"],
        "program_code": STORED["program_code"],
    }
