"""The same program and input give the same output however the input is cut into steps, with any number of tasks, through a
snapshot, and with hardly any memory.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_pipelines.datastream.collecting import CollectSink
from airflow_pipelines.streams.clock import ManualClock
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.snapshots import Snapshot
from airflow_pipelines.streams.state import store
from tests.datastream.any_cut_programs import PROGRAMS
from tests.datastream.programs import IN_MEMORY, environment
from tests.tiers import examples

EXAMPLES = examples("STREAM_EXAMPLES", 25)


class Run:
    """A run of a program, one step at a time."""

    def __init__(self, build, inputs, parallelism, snapshot=None, settings=None):
        env = environment(parallelism)
        self.sink = CollectSink()
        node = build(env, *inputs).sink_to(self.sink)._node
        plan = plan_of(env.graph, [node.id], Defaults(parallelism))
        env._take_sinks()
        self.runner = LocalRunner(plan, settings, ManualClock(), snapshot)

    def to_the_end(self, cuts):
        cuts = list(cuts)
        while not self.runner.has_ended:
            self.runner.step(default=cuts.pop(0) if cuts else 10_000)
        self.runner.finish()
        return list(self.sink.values)


def _expected(build, inputs):
    return Counter(map(repr, Run(build, inputs, 1).to_the_end([])))


ELEMENTS = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.integers(0, 60), st.integers(0, 9)), max_size=25)
CUTS = st.lists(st.integers(0, 6), max_size=20)


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(one=ELEMENTS, two=ELEMENTS, cuts=CUTS, more_cuts=CUTS, before=st.sampled_from([1, 4]), after=st.sampled_from([1, 2, 4]))
def test_cuts_tasks_and_a_snapshot_change_nothing(name, one, two, cuts, more_cuts, before, after):
    build = PROGRAMS[name]
    inputs = (one, two)
    expected = _expected(build, inputs)
    assert Counter(map(repr, Run(build, inputs, before).to_the_end(cuts))) == expected

    begun = Run(build, inputs, before)
    for cut in cuts:
        begun.runner.step(default=cut)
    data = begun.runner.snapshot().to_bytes()
    went_on = Run(build, inputs, after, Snapshot.from_bytes(data))
    found = [*begun.sink.values, *went_on.to_the_end(more_cuts)]
    assert Counter(map(repr, found)) == expected


@contextmanager
def hardly_any_memory():
    """Two keys are hot, and all others are in a database."""
    with mock.patch.object(store, "_ROWS_AT_ONCE", 3):
        yield TaskSettings(hot_keys=2, scratch_folder=IN_MEMORY)


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    one=ELEMENTS,
    two=ELEMENTS,
    cuts=CUTS,
    asked=st.sets(st.integers(0, 20)),
    more_cuts=CUTS,
    tasks=st.sampled_from([1, 2]),
    after=st.sampled_from([1, 4]),
)
def test_little_memory_and_what_is_written_in_between_change_nothing(name, one, two, cuts, asked, more_cuts, tasks, after):
    build = PROGRAMS[name]
    inputs = (one, two)
    expected = _expected(build, inputs)
    with hardly_any_memory() as tight:
        assert Counter(map(repr, Run(build, inputs, tasks, settings=tight).to_the_end(cuts))) == expected

        begun = Run(build, inputs, tasks, settings=tight)
        for number, cut in enumerate(cuts):
            begun.runner.step(default=cut)
            if number in asked:
                begun.runner.flush()
        kept = Snapshot.from_bytes(begun.runner.snapshot().to_bytes())
        begun.runner.close()
        went_on = Run(build, inputs, after, kept, tight)
        found = [*begun.sink.values, *went_on.to_the_end(more_cuts)]
    assert Counter(map(repr, found)) == expected
