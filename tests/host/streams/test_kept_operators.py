"""What is known of the operators of a program that runs."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from airflow_pipelines.contract.change_plan import OperatorChange
from airflow_pipelines.contract.change_text import operator_effect
from airflow_pipelines.engine.streams.saved_state import PAGES, REST, SCHEMAS
from airflow_pipelines.engine.trace import Trace
from airflow_pipelines.host.streams.kept_operators import running_operators
from airflow_pipelines.host.streams.stream_changes import SavedOperator, StreamChange, stream_change
from airflow_pipelines.program.streams import StreamOperator, StreamProgram, StreamState

TOTAL = StreamState("total", "value", "INT")
SOURCE = StreamOperator("in", "Source: orders", "Data Source", "f0")
COUNT = StreamOperator("count", "Count", "Keyed Process", "f1", ("in",), True, "STRING", 128, (TOTAL,))
PROGRAM = StreamProgram("p", b"", (SOURCE, COUNT))


@pytest.mark.parametrize("states", [{}, {name: SCHEMAS[name].empty() for name in (PAGES, REST)}], ids=["none", "empty"])
def test_before_the_first_checkpoint_all_operators_go_on(states: dict[str, Trace]) -> None:
    kept = running_operators(states, PROGRAM)
    assert kept == (SavedOperator(SOURCE, (), None), SavedOperator(COUNT, (TOTAL,), None))
    assert stream_change(kept, PROGRAM, frozenset()) == StreamChange()


def test_the_size_of_a_state_is_not_known_before_the_first_checkpoint() -> None:
    gone = stream_change(running_operators({}, PROGRAM), StreamProgram("p", b"", ()), frozenset())
    source, count = gone.operators
    assert (source.bytes, source.is_size_known) == (None, True), "a position has no size"
    assert (count.bytes, count.is_size_known) == (None, False)
    assert operator_effect(count) == ("DROPS total (its size is not known before the first checkpoint), because it is no more")
    assert OperatorChange.from_dict(asdict(count)) == count


def test_without_a_stream_program_there_are_none() -> None:
    assert running_operators({}, None) == ()
