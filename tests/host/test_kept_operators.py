"""What is known of the operators of a program that runs."""

from __future__ import annotations

import pytest

from airflow_pipelines.engine.streams.saved_state import PAGES, REST, SCHEMAS
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.host.kept_operators import running_operators
from airflow_pipelines.host.stream_changes import KeptOperator, StreamChange, stream_change
from airflow_pipelines.program.streams import StreamOperator, StreamProgram, StreamState

TOTAL = StreamState("total", "value", "INT")
SOURCE = StreamOperator("in", "Source: orders", "Data Source", "f0")
COUNT = StreamOperator("count", "Count", "Keyed Process", "f1", ("in",), True, "STRING", 128, (TOTAL,))
PROGRAM = StreamProgram("p", b"", (SOURCE, COUNT))


@pytest.mark.parametrize("states", [{}, {name: SCHEMAS[name].empty() for name in (PAGES, REST)}], ids=["none", "empty"])
def test_before_the_first_checkpoint_all_operators_go_on(states: dict[str, Trace]) -> None:
    kept = running_operators(states, PROGRAM)
    assert kept == (KeptOperator(SOURCE), KeptOperator(COUNT, (TOTAL,)))
    assert stream_change(kept, PROGRAM, frozenset()) == StreamChange()


def test_without_a_stream_program_there_are_none() -> None:
    assert running_operators({}, None) == ()
