"""In batch mode the number of tasks changes nothing either, and nothing depends on how the input was read."""

from collections import Counter

import pytest

from airflow_pipelines.datastream.collecting import CollectSink
from airflow_pipelines.streams.clock import ManualClock
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.operators.base import TaskSettings
from tests.datastream.programs import environment
from tests.datastream.test_any_cut import PROGRAMS

ONE = [("abc"[number % 3], number * 7 % 50, number % 9) for number in range(60)]
TWO = [("bcd"[number % 3], number * 3 % 50, number % 4) for number in range(40)]


def run(name, parallelism, at_once):
    env = environment(parallelism)
    sink = CollectSink()
    node = PROGRAMS[name](env, ONE, TWO).sink_to(sink)._node
    env._take_sinks()
    runner = LocalRunner(plan_of(env.graph, [node.id], Defaults(parallelism)), TaskSettings(is_batch=True), ManualClock())
    while not runner.has_ended:
        runner.step(default=at_once)
    runner.finish()
    return Counter(map(repr, sink.values))


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "broadcast without keys"])
def test_results_in_batch_mode_do_not_depend_on_tasks_or_steps(name):
    expected = run(name, 1, 10_000)
    assert expected
    assert run(name, 1, 3) == expected
    assert run(name, 4, 10_000) == expected
