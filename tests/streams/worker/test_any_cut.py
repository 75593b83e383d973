"""A program that is fed gives what it gives when it reads its sources itself: however it is fed, and wherever it is killed."""

import os
import pickle
import signal
from collections import Counter
from functools import cache
from itertools import chain
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from airflow_pipelines.datastream import KeyedProcessFunction
from airflow_pipelines.datastream.common import Duration, WatermarkStrategy
from airflow_pipelines.datastream.state import ValueStateDescriptor
from tests.datastream.programs import EachElement, environment, first
from tests.datastream.test_any_cut import CUTS, ELEMENTS, EXAMPLES, PROGRAMS, _expected
from tests.streams.worker.programs import Held, Kept, elements, ended, program, rows, source, splits, start


@cache
def _fed_program(name, parallelism):
    env = environment(parallelism)
    return program(PROGRAMS[name](env, [], []), parallelism=parallelism).to_bytes()


def fed_program(name, parallelism):
    """As a process gets it: to define one takes longer than to read it."""
    return pickle.loads(_fed_program(name, parallelism))


@cache
def _sources(name):
    return [chain.head.uid for chain in fed_program(name, 1).plan.chains if not chain.head.node.inputs]


def feeds_of(name, inputs, cuts):
    """What is fed in each step: some elements of each source, in turns."""
    uids = _sources(name)
    steps = [[splits(1, uid) for uid in uids]]
    waiting = {uid: list(values) for uid, values in zip(uids, inputs, strict=False)}
    cuts = [cut for cut in cuts if cut] or [3]
    turn = 0
    while waiting:
        uid = list(waiting)[turn % len(waiting)]
        cut = cuts[turn % len(cuts)]
        taken, waiting[uid] = waiting[uid][:cut], waiting[uid][cut:]
        step = [elements(taken, uid=uid)]
        if not waiting[uid]:
            del waiting[uid]
            step.append(ended(uid=uid))
        if turn % 2:
            steps[-1] += step
        else:
            steps.append(step)
        turn += 1
    return steps


class Life(NamedTuple):
    """A process that is killed, with its number of tasks, the steps until its checkpoint, and those from there until its end."""

    tasks: int
    before: int
    after: int


def run_through(lives, make, kill, steps, tasks):
    """Steps through processes of which each but the last is killed. One goes on from the checkpoint that was taken last."""
    kept, found, lost, number = Kept(), [], None, 0
    for life in lives:
        process = make(life.tasks)
        process.open(kept.rest, database=kept.stored())
        saved_at = number + life.before
        killed_at = min(saved_at + life.after, len(steps))
        given = []
        for at in range(number, killed_at):
            if at == saved_at:
                kept.save(process)
                process.notify_checkpoint_complete()
                found.extend(chain.from_iterable(given))
                given, number = [], at
            given.append(rows(process.step(at, steps[at])))
        kill(process)
        lost = life.tasks, given
    process = make(tasks)
    process.open(kept.rest, database=kept.stored())
    replayed = []
    for at in range(number, len(steps)):
        stepped = process.step(at, steps[at])
        replayed.append(rows(stepped))
    assert stepped.has_ended
    process.close()
    if lost is not None and lost[0] == tasks:
        assert replayed[: len(lost[1])] == lost[1]
    return [*found, *chain.from_iterable(replayed)]


LIVES = st.lists(st.builds(Life, st.sampled_from([1, 2, 3, 4]), st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=2)


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(one=ELEMENTS, two=ELEMENTS, cuts=CUTS, lives=LIVES, tasks=st.sampled_from([1, 2, 3]))
@example(
    one=[("abcd"[number % 4], number * 7 % 60, number % 10) for number in range(40)],
    two=[("dcba"[number % 4], number * 5 % 60, number % 7) for number in range(40)],
    cuts=[4, 9, 1],
    lives=[Life(1, 4, 2), Life(4, 4, 2)],
    tasks=2,
)
def test_feeds_and_replays_give_what_the_sources_give(name, one, two, cuts, lives, tasks):
    inputs = (one, two)
    expected = Counter((text,) for text in _expected(PROGRAMS[name], inputs).elements())
    steps = feeds_of(name, inputs, cuts)

    def make(number):
        return Held(fed_program(name, number))

    assert Counter(run_through(lives, make, Held.close, steps, tasks)) == expected


@pytest.mark.core("state and timers")
@pytest.mark.processes
@pytest.mark.parametrize("name", ["state and timers", "sessions, late allowed", "broadcast", "downstream"])
def test_processes_that_are_killed_lose_nothing(name):
    one = [("abcd"[number % 4], number * 7 % 60, number % 10) for number in range(60)]
    two = [("dcba"[number % 4], number * 5 % 60, number % 7) for number in range(40)]
    expected = Counter((text,) for text in _expected(PROGRAMS[name], (one, two)).elements())
    steps = feeds_of(name, (one, two), [4, 9, 1])

    def kill(worker):
        os.kill(worker.pid, signal.SIGKILL)
        worker.close(0)

    def make(tasks):
        return start(fed_program(name, tasks))

    assert Counter(run_through([Life(1, 3, 3), Life(4, 2, 2)], make, kill, steps, 2)) == expected


class Timed(KeyedProcessFunction):
    """Says when it is called in both notions of time."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        self.count.update((self.count.value() or 0) + 1)
        timers.register_event_time_timer(value[1] + 5)
        timers.register_processing_time_timer(timers.current_processing_time() + value[1])
        yield value, self.count.value(), timers.current_watermark(), timers.current_processing_time()

    def on_timer(self, timestamp, ctx):
        timers = ctx.timer_service()
        yield ctx.time_domain(), timestamp, timers.current_watermark(), timers.current_processing_time()


def timed_program(parallelism, at_source, periodic):
    env = environment(parallelism)
    generated = (
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(2))
        if periodic
        else WatermarkStrategy.for_generator(lambda: EachElement(2))
    )
    strategy = generated.with_timestamp_assigner(lambda value, _: value[1]).with_idleness(Duration.of_millis(300))
    stream = source(env, strategy=strategy if at_source else None, bounded=False)
    if not at_source:
        stream = stream.rebalance().assign_timestamps_and_watermarks(strategy).uid("event time")
    return program(stream.key_by(first).process(Timed()).uid("timed"), parallelism=parallelism)


TIMED_STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 40, 210, 310]),
        st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.integers(0, 40)), max_size=3),
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("periodic", [True, False], ids=["periodic", "after elements"])
@pytest.mark.parametrize("at_source", [True, False], ids=["at the source", "later"])
@settings(max_examples=4 * EXAMPLES, deadline=None)
@given(steps=TIMED_STEPS, saved_at=st.integers(1, 12), parallelism=st.sampled_from([1, 2]))
def test_a_replay_with_the_same_times_gives_the_same_rows(at_source, periodic, steps, saved_at, parallelism):
    """Watermarks, idle splits and timers of processing time follow from the times of the steps alone."""
    saved_at = min(saved_at, len(steps))
    fed, now = [(1_000, [splits(3)])], 1_000
    for pause, arrived in steps:
        now += pause
        fed.append((now, [elements([(key, at)], split) for split, key, at in arrived]))
    kept, lost = Kept(), []
    begun = Held(timed_program(parallelism, at_source, periodic))
    begun.open(now_ms=1_000)
    for number, (now, feeds) in enumerate(fed):
        if number == saved_at:
            kept.save(begun)
            lost = []
        stepped = begun.step(now, feeds)
        lost.append((rows(stepped), stepped.next_due))
    went_on = Held(timed_program(parallelism, at_source, periodic))
    went_on.open(kept.rest, database=kept.stored())
    replayed = []
    for now, feeds in fed[saved_at:]:
        stepped = went_on.step(now, feeds)
        replayed.append((rows(stepped), stepped.next_due))
    assert replayed == lost
