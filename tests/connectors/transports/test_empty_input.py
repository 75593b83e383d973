"""An input without rows."""

from __future__ import annotations

from airflow_pipelines.connectors.transports.empty_input import EmptyInput


def test_the_end_comes_at_once() -> None:
    source = EmptyInput()
    source.open(None)
    chunk = source.read(10, 1)
    assert chunk is not None
    assert (chunk.changes, chunk.records, chunk.end_of_input) == (None, 0, True)
