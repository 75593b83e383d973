"""The table of connectors says what their definitions say."""

from __future__ import annotations

from airflow_pipelines.connectors.built_in import BUILT_IN_INPUTS, BUILT_IN_OUTPUTS
from tools.connector_table import PAGE, page, table


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run python -m tools.connector_table"


def test_the_table_has_every_connector() -> None:
    lines = table().splitlines()[2:]
    assert len(lines) == len(BUILT_IN_INPUTS) + len(BUILT_IN_OUTPUTS)
    found = next(line for line in lines if line.startswith("| [`kafka_output`]"))
    assert found.startswith("| [`kafka_output`](kafka.md#kafka_output) | output | ")
    assert "`airflow-pipelines[kafka]`" in found
