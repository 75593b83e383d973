"""Programs in processes of their own, as a pipeline uses them."""

import pytest

from airflow_pipelines.datastream import KeyedProcessFunction
from airflow_pipelines.datastream.state import ValueStateDescriptor
from tests.datastream.programs import environment
from tests.streams.worker.programs import Kept, elements, ended, program, rows, source, splits, start

pytestmark = pytest.mark.processes


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


def counting():
    return program(source(environment()).key_by(lambda value: value).process(Count()).uid("count"))


def test_a_program_goes_on_from_its_changes_in_another_process():
    bound = counting()
    kept = Kept()
    first = start(bound)
    first.open()
    assert rows(first.step(1, [splits(1), elements("ab")])) == [("('a', 1)",), ("('b', 1)",)]
    kept.apply(first.changes())
    assert rows(first.step(2, [elements("aa")])) == [("('a', 2)",), ("('a', 3)",)]
    first.close(0)
    second = start(bound)
    second.open(kept.rest, kept.stored())
    stepped = second.step(3, [elements("a"), ended()])
    assert rows(stepped) == [("('a', 2)",)]
    assert stepped.has_ended
    second.close()
