"""What opening a pipeline needs, and what it refuses."""

from __future__ import annotations

import pytest

from tests.host.driver import PROGRAM, ROWS, Make, totals


@pytest.mark.core
def test_views_over_tables_that_are_not_materialized_cannot_be_bootstrapped(make: Make) -> None:
    program = "CREATE TABLE plain (x INT); CREATE VIEW v AS SELECT x FROM plain;"
    pipeline = make(program)
    pipeline.start()
    pipeline.insert("plain", {"x": 1})
    pipeline.suspend()
    pipeline.program = program.replace("SELECT x FROM", "SELECT x + 1 AS x FROM")
    failed = pipeline.start("Stopped", bootstrap_policy="allow")
    assert failed.error is not None
    assert failed.error["error_code"] == "BootstrapNotAllowed"
    assert "not materialized" in failed.error["message"]


def test_a_modified_table_starts_empty(make: Make) -> None:
    pipeline = make()
    pipeline.start()
    pipeline.insert("t", *ROWS)
    pipeline.suspend()
    pipeline.program = PROGRAM.replace("name VARCHAR", "name VARCHAR, extra INT")
    pipeline.start("Running", bootstrap_policy="allow")
    assert pipeline.query("SELECT * FROM t") == []
    assert totals(pipeline) == []


@pytest.mark.core
def test_two_incarnations_never_run_over_one_folder(make: Make) -> None:
    first, second = make(), make()
    first.start()
    second.folder = first.folder
    failed = second.start("Stopped")
    assert failed.error is not None
    assert "in use by process" in failed.error["message"]
    first.insert("t", ROWS[0])


@pytest.mark.core
def test_a_program_that_does_not_compile_ends_the_start(make: Make) -> None:
    failed = make("CREATE VIEW v AS SELECT x FROM nowhere;").start("Stopped")
    assert failed.error is not None
    assert failed.error["error_code"] == "StartFailedDueToFailedCompilation"
    assert "nowhere" in failed.error["message"]
