"""A plan travels by value: with the functions of the user, as a worker process would get it."""

import pickle

import pytest

from airflow_pipelines.engine.spark.python_udfs import pickle_by_value
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.local import LocalRunner
from tests.datastream.programs import environment
from tests.datastream.test_any_cut import PROGRAMS

ELEMENTS = [("ab"[number % 2], number, number % 7) for number in range(40)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_plan_that_was_bytes_gives_the_same_output(name, capsys):
    env = environment(2)
    node = PROGRAMS[name](env, ELEMENTS, ELEMENTS).print()._node
    env._take_sinks()
    plan = plan_of(env.graph, [node.id], Defaults(2))
    printed = []
    for each in (plan, pickle.loads(pickle_by_value(plan))):
        runner = LocalRunner(each)
        runner.run()
        runner.finish()
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""
