"""What a user sees of an error: the program's own frames, and the path to what cannot travel."""

from __future__ import annotations

import threading
import traceback

import pytest

from airflow_pipelines.datastream.common import JsonRowDeserializationSchema, Types
from airflow_pipelines.datastream.functions import KeyedProcessFunction, MapFunction
from airflow_pipelines.datastream.state import ValueStateDescriptor
from airflow_pipelines.streams.errors import NoKeyError, StreamProgramError
from airflow_pipelines.streams.values import CannotCopyError
from tests.datastream.programs import environment

ROW = Types.ROW_NAMED(["a"], [Types.INT()])


def raised_by(stream):
    stream.print()
    with pytest.raises(StreamProgramError) as raised:
        stream.get_execution_environment().execute()
    return raised.value


def names(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


class _StateInOpen(KeyedProcessFunction):
    def open(self, runtime_context):
        runtime_context.get_state(ValueStateDescriptor("number")).update(1)

    def process_element(self, value, ctx):
        yield value


def test_an_error_of_the_program_has_no_frames_of_the_machinery():
    error = raised_by(environment().from_collection([("a", 1), (None, 2)]).key_by(lambda pair: pair[0]).sum(1))
    assert isinstance(error, NoKeyError)
    assert names(error) == ["raised_by", "execute"]
    assert error.__notes__ == ["in operator 'Sum', element: (None, 2)"]
    error = raised_by(environment().from_collection([1]).key_by(lambda number: number).process(_StateInOpen()))
    assert names(error) == ["raised_by", "execute", "open"]


@pytest.mark.parametrize(
    "stream",
    [
        lambda env: env.from_collection([1]).map(lambda number: "text", Types.INT()),
        lambda env: env.from_collection([b"{"]).map(JsonRowDeserializationSchema.builder().type_info(ROW).build().deserialize),
    ],
)
def test_a_value_that_does_not_fit_has_no_frames_of_the_machinery(stream):
    env = environment()
    stream(env).print()
    with pytest.raises((TypeError, ValueError)) as raised:
        env.execute()
    assert names(raised.value)[1:] == ["execute"]
    assert raised.value.__notes__[0].startswith("in operator 'Map', ")


def test_a_value_that_cannot_be_given_on_is_named_by_the_path_to_it():
    lock = threading.Lock()

    class Client:
        def __init__(self):
            self.settings = {"locks": [1, lock]}

    error = raised_by(environment().from_collection([5]).map(lambda number: (number, [{"client": Client()}])))
    assert isinstance(error, CannotCopyError)
    assert "A value of type tuple cannot be given on" in str(error)
    assert "Its part at [1][0]['client'].settings['locks'][1] is of type lock: cannot pickle" in str(error)
    assert error.__notes__ == ["in operator 'Map', element: 5"]
    assert "Its part" not in str(raised_by(environment().from_collection([5]).map(lambda number: lock)))


def test_what_a_function_holds_is_named_by_the_path_to_it():
    class Function(MapFunction):
        def __init__(self):
            self.client = {"a": threading.Lock()}

        def map(self, value):
            return value

    error = raised_by(environment().from_collection([1]).map(Function()))
    assert str(error).startswith("Function.client['a'] (of type lock) cannot be copied to where the function runs")
    assert error.__cause__ is None
