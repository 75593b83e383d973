"""Operators without state, and how a program is run."""

import traceback

import pytest

from airflow_pipelines.datastream.environment import StreamExecutionEnvironment
from airflow_pipelines.streams.elements import OutputTag
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.functions import FilterFunction, FlatMapFunction, MapFunction


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


class _Times(MapFunction):
    def __init__(self, factor):
        self.factor = factor
        self.calls = []

    def open(self, runtime_context):
        self.calls.append(f"open {runtime_context.get_task_name_with_subtasks()}")

    def map(self, value):
        return (value * self.factor, list(self.calls))

    def close(self):
        self.calls.append("close")


class _Twice(FlatMapFunction):
    def flat_map(self, value):
        yield value
        yield value


class _Odd(FilterFunction):
    def filter(self, value):
        return value % 2


def test_callables_and_function_objects_give_results_in_the_order_of_their_elements():
    stream = environment().from_collection([1, 2, 3])
    assert list(stream.map(lambda x: x + 1).filter(lambda x: x > 2).flat_map(range).execute_and_collect()) == [0, 1, 2, 0, 1, 2, 3]
    assert list(stream.filter(_Odd()).flat_map(_Twice()).execute_and_collect()) == [1, 1, 3, 3]
    assert stream.flat_map(lambda x: [x] if x > 1 else None).execute_and_collect(limit=5) == [2, 3]


def test_a_function_object_is_opened_and_what_it_does_to_itself_stays_in_its_task():
    function = _Times(3)
    stream = environment().from_collection([1, 2]).map(function)
    assert list(stream.execute_and_collect()) == [(3, ["open Map (1/1)"]), (6, ["open Map (1/1)"])]
    assert function.calls == []


def test_print_names_the_stream_and_the_task(capsys):
    env = environment()
    stream = env.from_collection(["a", "b", "c"])
    stream.print()
    env.execute()
    stream.print("in").set_parallelism(2)
    env.execute()
    assert capsys.readouterr().out.splitlines()[:3] == ["a", "b", "c"]
    env.from_collection(["x", "y"]).print("in").set_parallelism(2)
    env.execute()
    assert sorted(capsys.readouterr().out.splitlines()) == ["in:1> x", "in:2> y"]


def test_what_a_function_changes_afterwards_is_not_seen_by_those_who_got_it_before():
    class Growing(MapFunction):
        def open(self, runtime_context):
            self.seen = []

        def map(self, value):
            self.seen.append(value)
            return self.seen

    stream = environment().from_collection([1, 2, 3]).map(Growing())
    assert list(stream.execute_and_collect()) == [[1], [1, 2], [1, 2, 3]]


def test_two_readers_of_a_stream_do_not_see_each_other_s_changes():
    env = environment()
    stream = env.from_collection([{"n": 1}])
    changed = stream.map(lambda d: d.update(n=2) or d)
    assert list(changed.union(stream).map(lambda d: d["n"]).execute_and_collect()) in ([2, 1], [1, 2])


def test_functions_that_change_their_elements_change_nothing_for_a_second_run():
    stream = environment().from_collection([{"n": 1}]).map(lambda d: d.update(n=d["n"] + 1) or d)
    assert list(stream.execute_and_collect()) == list(stream.execute_and_collect()) == [{"n": 2}]


def test_an_error_is_the_user_s_own_with_its_line_and_the_element_and_without_frames_of_the_machinery():
    env = environment()
    env.from_collection([1, 0]).map(lambda x: 1 / x).print()
    with pytest.raises(ZeroDivisionError) as raised:
        env.execute()
    assert raised.value.__notes__ == ["in operator 'Map', element: 0"]
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert frames[-1].filename == __file__
    assert not any(frame.filename.endswith(("streams/loop.py", "streams/local.py", "streams/fanout.py")) for frame in frames)


def test_execute_runs_what_was_added_since_the_last_one_and_refuses_to_run_nothing(capsys):
    env = environment()
    env.from_collection([1]).print("first")
    env.execute()
    env.from_collection([2]).print("second")
    env.execute()
    assert capsys.readouterr().out == "first> 1\nsecond> 2\n"
    with pytest.raises(StreamProgramError, match="End a stream with print"):
        env.execute()


def test_functions_that_cannot_travel_and_wrong_results_are_refused_with_what_to_do():
    import threading

    class Locked(MapFunction):
        def __init__(self):
            self.helper = {"lock": threading.Lock()}

        def map(self, value):
            return value

    env = environment()
    with pytest.raises(StreamProgramError, match=r"Locked.helper\['lock'\].*open\(\)"):
        env.from_collection([1]).map(Locked()).execute_and_collect(limit=1)
    with pytest.raises(StreamProgramError, match=r"give it an object, as in Locked\(\)"):
        env.from_collection([1]).map(Locked)
    with pytest.raises(StreamProgramError, match="yield its results"):
        list(env.from_collection([1]).flat_map(lambda x: x).execute_and_collect())


def test_a_union_has_all_elements_and_those_of_each_stream_in_order():
    env = environment()
    found = list(
        env.from_collection([1, 2, 3]).union(env.from_collection([10, 20]), env.from_collection([100])).execute_and_collect()
    )
    assert sorted(found) == [1, 2, 3, 10, 20, 100]
    assert [each for each in found if each < 10] == [1, 2, 3]


def test_an_iterator_that_is_closed_stops_the_program():
    closed = []

    class Closing(MapFunction):
        def map(self, value):
            return value

        def close(self):
            closed.append(1)

    with environment().from_collection(range(100)).map(Closing()).execute_and_collect() as elements:
        assert next(elements) == 0
    assert closed == [1]
    assert list(elements) == []


def test_an_output_tag_needs_a_name():
    with pytest.raises(StreamProgramError, match="needs a name"):
        OutputTag("")
