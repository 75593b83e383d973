"""A step gives the same wherever its chains run."""

import os
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_pipelines.datastream import MapFunction
from airflow_pipelines.datastream.collecting import CollectSink
from airflow_pipelines.streams import local
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.relations import RelationSink
from airflow_pipelines.streams.worker import moving
from airflow_pipelines.streams.worker.bound import bind
from airflow_pipelines.streams.worker.chain_task import run_chain_job
from airflow_pipelines.streams.worker.failure import failure_of
from airflow_pipelines.streams.worker.job_place import JobPlace, in_place
from airflow_pipelines.streams.worker.moving import FailedElsewhereError, rounds_of
from airflow_pipelines.streams.worker.remote_source import RemoteReader
from airflow_pipelines.streams.worker.remote_source import elements as polled
from tests.datastream.programs import environment
from tests.datastream.test_any_cut import CUTS, ELEMENTS, EXAMPLES, PROGRAMS
from tests.streams.worker.programs import TEXT, Held, Kept, as_text, elements, program, rows, source, splits
from tests.streams.worker.test_any_cut import fed_program, feeds_of


@contextmanager
def rounds_of_at_most(limit):
    """So many elements of a split pass through the program at a time."""
    with (
        mock.patch.object(local.LocalRunner.step, "__defaults__", (None, limit)),
        mock.patch.object(local, "STEP_ELEMENTS", limit),
        mock.patch("airflow_pipelines.streams.worker.run.STEP_ELEMENTS", limit),
    ):
        yield


class HeldElsewhere(Held):
    """A program in this process whose large steps run as jobs."""

    def __init__(self, bound, large=lambda now: True, least=0):
        super().__init__(bound)
        self.large = large
        self.least = least
        self.jobs = 0

    def run_jobs(self, jobs):
        self.jobs += len(jobs)
        return [run_chain_job(job) for job in jobs]

    def step(self, now_ms, feeds):
        if self.large(now_ms):
            return self._run.large_step(now_ms, feeds, self.run_jobs, self.least)
        return super().step(now_ms, feeds)


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    one=ELEMENTS,
    two=ELEMENTS,
    cuts=CUTS,
    large=st.sets(st.integers(0, 20)),
    saved=st.sets(st.integers(0, 20)),
    least=st.sampled_from([0, 1, 3]),
    parallelism=st.sampled_from([2, 3]),
    limit=st.sampled_from([1, 2, 10_000]),
)
def test_jobs_give_the_same_rows_and_the_same_state(name, one, two, cuts, large, saved, least, parallelism, limit):
    """Rows in the same order, and each checkpoint has the same rows of state."""
    with rounds_of_at_most(limit):
        steps = feeds_of(name, (one, two), cuts)
        here, moved = Held(fed_program(name, parallelism)), HeldElsewhere(fed_program(name, parallelism), large.__contains__, least)
        kept_here, kept_moved = Kept(), Kept()
        here.open(now_ms=0)
        moved.open(now_ms=0)
        for number, feeds in enumerate(steps):
            expected, found = here.step(number, feeds), moved.step(number, feeds)
            assert rows(found) == rows(expected)
            assert (found.read, found.next_due, found.has_ended) == (expected.read, expected.next_due, expected.has_ended)
            if number in saved:
                kept_here.save(here)
                kept_moved.save(moved)
                assert kept_moved.keys() == kept_here.keys()
        assert found.has_ended
        here.close()
        moved.close()


class Broken(MapFunction):
    def map(self, value):
        print("mapping", value)  # noqa: T201
        return 1 // value


def numbers(stream_of, parallelism=2):
    env = environment(parallelism)
    return program(stream_of(source(env)), parallelism=parallelism)


def test_a_function_that_fails_elsewhere_is_told_as_it_is_here():
    def failure(make):
        run = make(numbers(lambda stream: stream.map(Broken()).name("Divide")))
        run.open()
        with pytest.raises((FailedElsewhereError, ZeroDivisionError)) as caught:
            run.step(0, [splits(1), elements([1, 0])])
        error = caught.value
        return error.failure if isinstance(error, FailedElsewhereError) else failure_of(error, ())

    told = failure(HeldElsewhere)
    assert replace(told, traceback="") == replace(failure(Held), traceback="")
    assert "return 1 // value" in told.traceback
    assert "chain_task" not in told.traceback
    assert (told.type, told.operator) == ("ZeroDivisionError", "Divide")
    assert "element: 0" in told.notes[0]


def test_what_is_printed_elsewhere_is_printed_here(capsys):
    run = HeldElsewhere(numbers(lambda stream: stream.map(Broken()).name("Divide")))
    run.open()
    run.step(0, [splits(1), elements([1])])
    assert run.jobs == 2
    assert capsys.readouterr().out == "mapping 1\n"


def test_elements_that_have_no_bytes_stay():
    run = HeldElsewhere(numbers(lambda stream: stream.map(lambda value: lambda: value).rebalance().map(lambda call: call())))
    run.open()
    assert rows(run.step(0, [splits(2), elements([1, 2]), elements([3], split=1)])) == [("1",), ("3",), ("2",)]
    asked = run.jobs
    assert asked == 2, "the first chain was tried, and the second one was not"
    assert rows(run.step(1, [elements([4])])) == [("4",)]
    assert run.jobs == asked, "a chain whose elements cannot travel is not tried again"


def test_chains_with_other_sinks_stay():
    env = environment(2)
    stream = source(env).map(lambda value: value + 1).key_by(lambda value: value).map(lambda value: value)
    other = stream.sink_to(CollectSink()).uid("collect")._node
    node = stream.sink_to(RelationSink("out", (("text", "STRING"),), as_text, None, TEXT.serialize().to_pybytes())).uid("out")._node
    env._take_sinks()
    run = HeldElsewhere(bind(plan_of(env.graph, [node.id, other.id], Defaults(2)), TaskSettings()))
    run.open()
    assert rows(run.step(0, [splits(1), elements([1])])) == [("2",)]
    assert run.jobs == 2, "the two tasks of the source alone may run elsewhere"


def test_a_chain_with_one_task_stays():
    run = HeldElsewhere(numbers(lambda stream: stream.map(lambda value: value), 1))
    run.open()
    assert rows(run.step(0, [splits(1), elements([1])])) == [("1",)]
    assert run.jobs == 0


def test_a_chain_with_few_elements_stays():
    run = HeldElsewhere(numbers(lambda stream: stream.filter(lambda value: value > 2).rebalance()), least=3)
    run.open()
    assert rows(run.step(0, [splits(1), elements([1, 2, 3])])) == [("3",)]
    assert run.jobs == 2, "the sink gets one element, and the source three"
    assert sorted(rows(run.step(1, [elements([4, 5])]))) == [("4",), ("5",)]
    assert run.jobs == 2


class Counted(MapFunction):
    def open(self, runtime_context):
        self.counter = runtime_context.get_metrics_group().counter("mapped")

    def map(self, value):
        self.counter.inc()
        return value


def test_metrics_go_on_wherever_a_function_runs():
    run = HeldElsewhere(numbers(lambda stream: stream.map(Counted()).uid("counted")), large=lambda now: now % 2)
    run.open()
    run.step(0, [splits(1), elements([1, 2])])
    run.step(1, [elements([3])])
    run._run._next_metrics = 0
    stepped = run.step(2, [elements([4, 5])])
    assert stepped.metrics["counted", 0].counted == {"mapped": 5}


def test_what_comes_back_is_bounded():
    run = HeldElsewhere(numbers(lambda stream: stream.map(lambda value: "x" * value).rebalance()))
    run.open()
    with mock.patch.object(moving, "MOST_BYTES", 100_000):
        [(text,)] = rows(run.step(0, [splits(1), elements([200_000])]))
    assert len(text) == 200_002


def test_a_process_leaves_the_surroundings_of_a_task_as_they_were(tmp_path):
    (tmp_path / "helper_of_a_program.py").write_text("import os\nVALUE = os.environ['OF_PROGRAM'], os.getcwd()\n")
    before = (Path.cwd(), list(sys.path), dict(os.environ), sys.modules["__main__"])
    with in_place(JobPlace(str(tmp_path), (str(tmp_path),), {"OF_PROGRAM": "1"})):
        import helper_of_a_program

        assert ("1", str(tmp_path)) == helper_of_a_program.VALUE
    assert (Path.cwd(), list(sys.path), dict(os.environ), sys.modules["__main__"]) == before
    assert "helper_of_a_program" not in sys.modules


@given(st.lists(st.integers(0, 7), max_size=12), st.integers(1, 6))
def test_rounds_are_as_many_as_a_reader_needs(lengths, limit):
    reader = RemoteReader(0)
    feeds = [elements(list(range(length))) for length in lengths]
    for feed in feeds:
        reader.add(polled(feed))
    polls = 0
    while reader.has_waiting:
        reader.poll(limit)
        polls += 1
    assert rounds_of(feeds, limit) == max(polls, 1)
