"""Modes, plans, restarts, savepoints, sources and sinks of the user, types."""

import json
import logging
import threading
import time

import pytest

from airflow_pipelines.datastream import (
    Configuration,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    Row,
    RuntimeExecutionMode,
    SinkFunction,
    SourceFunction,
    StreamExecutionEnvironment,
    StreamProgramError,
    Types,
)
from airflow_pipelines.datastream.common import Duration, RestartStrategies, WatermarkStrategy
from airflow_pipelines.datastream.state import ValueStateDescriptor
from airflow_pipelines.datastream.window import TumblingEventTimeWindows
from airflow_pipelines.streams.elements import MIN_TIMESTAMP
from airflow_pipelines.streams.function_source import FunctionSource
from tests.datastream.programs import Contents, collected, environment, first, timed


def test_batch_mode_takes_one_key_after_the_other_and_gives_final_results():
    elements = [(2, "c"), (1, "a"), (2, "d"), (1, "b"), (2, "e")]
    reduce = lambda a, b: (a[0], a[1] + b[1])  # noqa: E731
    batch = environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    assert collected(batch.from_collection(elements).key_by(first).reduce(reduce)) == [(1, "ab"), (2, "cde")]
    automatic = environment().set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    assert collected(automatic.from_collection(elements).key_by(first).reduce(reduce)) == [(1, "ab"), (2, "cde")]
    assert len(collected(environment().from_collection(elements).key_by(first).reduce(reduce))) == 5


def test_batch_mode_fires_the_timers_of_a_key_at_its_end_and_forgets_it():
    class Timers(KeyedProcessFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(ValueStateDescriptor("count"))

        def process_element(self, value, ctx):
            self.count.update((self.count.value() or 0) + 1)
            ctx.timer_service().register_event_time_timer(value[1] + 10)
            ctx.timer_service().register_processing_time_timer(10**15)
            yield value

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), timestamp, self.count.value(), ctx.time_domain().name

    env = environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    found = collected(timed(env.from_collection([("b", 1), ("a", 7), ("a", 3)]), delay=0).key_by(first).process(Timers()))
    assert found == [
        ("a", 3),
        ("a", 7),
        ("a", 13, 2, "EVENT_TIME"),
        ("a", 17, 2, "EVENT_TIME"),
        ("a", 10**15, 2, "PROCESSING_TIME"),
        ("b", 1),
        ("b", 11, 1, "EVENT_TIME"),
        ("b", 10**15, 1, "PROCESSING_TIME"),
    ]


def test_batch_mode_has_one_processing_time_and_final_results_whatever_checkpoints_and_failures_there_are():
    class Times(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timer_service().current_processing_time()

    elements = [(number % 3, number) for number in range(3000)]
    env = environment().set_runtime_mode(RuntimeExecutionMode.BATCH).enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    COMMITTED.clear()
    stream = env.from_collection(elements).map(_SlowAndFailsOnce()).key_by(first)
    stream.reduce(lambda a, b: (a[0], a[1] + b[1])).add_sink(_Committing())
    env.execute()
    assert [each for part in COMMITTED for each in part] == [(key, sum(range(key, 3000, 3))) for key in range(3)]
    found = collected(env.from_collection(elements).key_by(first).process(Times()))
    assert len({now for _, now in found}) == 1


def test_windows_in_batch_mode_know_no_late_elements():
    env = environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream = timed(env.from_collection([("a", 1), ("a", 15), ("a", 2)]), delay=0).key_by(first)
    found = collected(stream.window(TumblingEventTimeWindows.of(10)).process(Contents()))
    assert [each[2] for each in found] == [[("a", 1), ("a", 2)], [("a", 15)]]


def test_a_source_that_does_not_end_cannot_be_run_in_batch_mode():
    env = environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.add_source(_Numbers(3), "numbers").print()
    with pytest.raises(StreamProgramError, match="'Source: numbers' does not end"):
        env.execute()
    automatic = environment().set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    assert collected(automatic.add_source(_Numbers(3)).key_by(lambda number: 0).reduce(max)) == [1, 2, 3]


def test_the_plan_names_operators_and_how_elements_reach_them():
    env = environment(2)
    stream = env.from_collection([1]).map(lambda x: x).name("double").key_by(lambda x: x).reduce(max).uid("largest")
    stream.connect(env.from_collection([2]).broadcast())  # not part of the plan: nothing reads it
    stream.print()
    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert [(node["type"], node["pact"], node["parallelism"]) for node in nodes] == [
        ("Source: Collection Source", "Data Source", 1),
        ("double", "Operator", 2),
        ("Reduce", "Operator", 2),
        ("Sink: Print to Std. Out", "Data Sink", 2),
    ]
    assert nodes[1]["predecessors"] == [{"id": nodes[0]["id"], "ship_strategy": "REBALANCE", "side": "first"}]
    assert nodes[2]["predecessors"][0]["ship_strategy"] == "HASH"
    assert nodes[3]["predecessors"][0]["ship_strategy"] == "FORWARD"
    assert env.explain().splitlines() == [
        "Chain 1: 1 task",
        "  Source: Collection Source [Source: Collection Source#1]",
        "Chain 2: 2 tasks",
        "  <- REBALANCE from chain 1",
        "  double [double#1]",
        "Chain 3: 2 tasks",
        "  <- HASH from chain 2",
        "  Reduce [largest]",
        "  Sink: Print to Std. Out [Sink: Print to Std. Out#1]",
    ]


def test_two_operators_of_one_uid_are_refused():
    env = environment()
    env.from_collection([1]).map(str).uid("x").map(str).uid("x").print()
    with pytest.raises(StreamProgramError, match="same uid 'x'"):
        env.execute()


def test_declared_types_coerce_results_and_decide_how_they_are_printed(capsys):
    env = environment()
    env.from_collection([(43878, True)], Types.TUPLE([Types.SHORT(), Types.BOOLEAN()])).print()
    env.from_collection([1]).map(lambda x: ("a", None), Types.ROW([Types.STRING(), Types.INT()])).print()
    env.from_collection([1]).map(lambda x: Row("a", 2)).print()
    env.execute()
    assert capsys.readouterr().out.splitlines() == ["(-21658,true)", "+I[a, null]", str(Row("a", 2))]
    with pytest.raises(TypeError) as refused:
        collected(env.from_collection([1]).map(lambda x: "text", Types.INT()))
    assert "in operator 'Map', result: 'text'" in refused.value.__notes__


class _Numbers(SourceFunction):
    """Goes on from its position; says that nothing is there now and then."""

    def __init__(self, end):
        self.end = end
        self.next = 0

    def run(self, ctx):
        while self.next < self.end:
            self.next += 1
            yield ctx.with_timestamp(self.next, self.next * 10)
            yield None
            if self.next == 4:
                yield None  # nothing for a moment: time for a checkpoint

    def snapshot_state(self):
        return self.next

    def restore_state(self, state):
        self.next = state


@pytest.mark.parametrize("quick", [1, 200])
def test_the_elements_of_a_source_that_waits_do_not_wait_for_more(quick):
    handled = []

    class Waiting(SourceFunction):
        def run(self, ctx):
            for number in range(4):
                yield from range(number * quick, (number + 1) * quick)
                until = time.monotonic() + 10
                while len(handled) < (number + 1) * quick:
                    assert time.monotonic() < until, "the program has not seen the last element yet"
                    time.sleep(0.001)

    stream = environment().add_source(Waiting()).map(lambda number: handled.append(number) or number)
    assert collected(stream) == list(range(4 * quick))


def test_timers_fire_and_other_sources_are_read_while_a_source_function_waits():
    """The function waits for what follows from its own element, and from those of another source."""
    fired, numbers = threading.Event(), []

    class Waiting(SourceFunction):
        def run(self, ctx):
            yield "element"
            assert fired.wait(10), "no timer has fired"
            yield "last"

    class Later(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 20)

        def on_timer(self, timestamp, ctx):
            fired.set()
            yield "timer"

    env = environment()
    others = env.from_collection(range(30_000)).map(lambda number: numbers.append(number) or number)
    timers = env.add_source(Waiting()).key_by(lambda value: 0).process(Later())
    found = collected(timers.union(others.filter(lambda number: False)))
    assert found == ["timer"] or found == ["timer", "timer"]
    assert len(numbers) == 30_000


def test_a_source_function_that_waits_does_not_hold_idle_event_time_back():
    """Another source moves on while the one that waits is idle."""
    seen = threading.Event()

    class Waiting(SourceFunction):
        def run(self, ctx):
            yield ctx.with_timestamp("early", 1)
            assert seen.wait(10), "event time stands still"

    class Numbers(SourceFunction):
        def run(self, ctx):
            for number in range(1000):
                yield ctx.with_timestamp(number, number * 1000)
                time.sleep(0.005)
                if seen.is_set():
                    return

    class Watch(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(5_000)

        def on_timer(self, timestamp, ctx):
            seen.set()
            return ()

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_millis(30))
    env = environment()
    env.get_config().set_auto_watermark_interval(5)
    one = env.add_source(Waiting()).assign_timestamps_and_watermarks(strategy)
    other = env.add_source(Numbers()).assign_timestamps_and_watermarks(strategy)
    collected(one.union(other).key_by(lambda value: 0).process(Watch()))
    assert seen.is_set()


def test_a_function_that_does_not_come_back_from_its_wait_is_left_behind(caplog, monkeypatch):
    class Stuck(SourceFunction):
        def run(self, ctx):
            yield 1
            threading.Event().wait(60)

    monkeypatch.setattr("airflow_pipelines.streams.function_thread._JOIN_S", 0.05)
    reader = FunctionSource(Stuck()).open(0, None)
    assert reader.poll(10).values == [1]
    reader.close()
    assert "Stuck still waits, and is left behind" in caplog.text


def test_a_commit_reaches_a_function_between_two_elements_in_the_thread_that_runs_it():
    threads = set()
    committed = []

    class Noting(SourceFunction):
        def run(self, ctx):
            for self.number in range(1_000_000):
                threads.add(threading.get_ident())
                yield self.number

        def snapshot_state(self):
            threads.add(threading.get_ident())
            return getattr(self, "number", None)

        def notify_checkpoint_complete(self, state):
            threads.add(threading.get_ident())
            committed.append((state, self.number))

    reader = FunctionSource(Noting()).open(0, None)
    threads.clear()
    taken = reader.poll(50).values
    position = reader.position()
    assert position == taken[-1] == 49
    reader.commit(position)
    until = time.monotonic() + 10
    while not committed and time.monotonic() < until:
        time.sleep(0.001)
    assert committed == [(49, 49)]
    assert reader.poll(5).values == [50, 51, 52, 53, 54]
    assert reader.position() == 54
    reader.close()
    assert len(threads - {threading.get_ident()}) == 1


def test_an_error_of_a_function_comes_after_the_elements_before_it():
    class Failing(SourceFunction):
        def run(self, ctx):
            yield from range(5)
            raise ValueError("no more")

    reader = FunctionSource(Failing()).open(0, None)
    taken = []

    def take_all():
        while True:
            taken.extend(reader.poll(3).values)

    with pytest.raises(ValueError, match="no more"):
        take_all()
    assert taken == [0, 1, 2, 3, 4]
    reader.close()


def test_a_step_does_not_wait_long_for_a_source_that_waits_a_little_each_time():
    class Waiting(SourceFunction):
        def run(self, ctx):
            while True:
                time.sleep(0.001)
                yield "element"

    reader = FunctionSource(Waiting()).open(0, None)
    sizes = []
    while sum(sizes) < 5:
        sizes.append(len(reader.poll(10_000).values))
        time.sleep(0.002)
    reader.close()
    assert max(sizes) <= 21


def test_a_source_function_yields_elements_with_timestamps():
    class Timestamp(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield value, ctx.timestamp()

    assert collected(environment().add_source(_Numbers(2)).key_by(lambda x: 0).process(Timestamp())) == [(1, 10), (2, 20)]

    class Wrong(SourceFunction):
        def run(self, ctx):
            return None

    with pytest.raises(StreamProgramError, match="must yield the elements"):
        collected(environment().add_source(Wrong()))


COMMITTED = []


class _Committing(SinkFunction):
    def open(self, runtime_context):
        self.taken = []

    def invoke(self, value, context):
        self.taken.append(value)

    def prepare_commit(self):
        taken, self.taken = self.taken, []
        return taken or None

    def commit(self, prepared):
        if prepared not in COMMITTED:  # a restart commits again what was prepared before
            COMMITTED.append(prepared)


class _Counting(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value()


class _FailsOnce(MapFunction):
    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        if value == 7 and self.attempt == 0:
            raise RuntimeError("boom")
        return value


class _SlowAndFailsOnce(_FailsOnce):
    def map(self, value):
        if value[1] % 100 == 0:
            time.sleep(0.002)
        super().map(7 if value[1] == 2000 else value)
        return value


def test_a_restart_goes_on_from_the_last_checkpoint_and_commits_each_element_once():
    COMMITTED.clear()
    env = environment()
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    env.add_source(_Numbers(10)).map(_FailsOnce()).key_by(lambda x: 0).process(_Counting()).add_sink(_Committing())
    env.execute()
    assert [each for part in COMMITTED for each in part] == [(n, n) for n in range(1, 11)]
    assert len(COMMITTED) > 1


def test_without_a_restart_strategy_an_error_ends_the_program_and_commits_nothing_after_the_checkpoint():
    COMMITTED.clear()
    env = environment()
    env.add_source(_Numbers(10)).map(_FailsOnce()).add_sink(_Committing())
    with pytest.raises(RuntimeError, match="boom"):
        env.execute()
    assert COMMITTED == []


def _counting(env, end):
    env.add_source(_Numbers(end), "numbers").uid("numbers").key_by(lambda x: x % 2).process(_Counting()).uid("counting").add_sink(
        _Committing()
    ).uid("out")
    return env


class _Forever(_Numbers):
    def run(self, ctx):
        yield from super().run(ctx)
        while not ctx.is_cancelled:
            yield None


def test_a_program_goes_on_from_a_savepoint_with_its_state(tmp_path):
    COMMITTED.clear()
    env = environment()
    env.set_default_savepoint_directory(str(tmp_path))
    env.add_source(_Forever(4), "numbers").uid("numbers").key_by(lambda x: x % 2).process(_Counting()).uid("counting").add_sink(
        _Committing()
    ).uid("out")
    client = env.execute_async()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        path = client.trigger_savepoint().result(20)
        if sum(len(part) for part in COMMITTED) == 4:
            break
    path = client.stop_with_savepoint(False).result(20)
    client.get_job_execution_result().result(20)
    assert client.get_job_status().result().name == "FINISHED"
    COMMITTED.clear()
    _counting(
        StreamExecutionEnvironment.get_execution_environment(Configuration().set_string("execution.savepoint.path", path)), 6
    ).execute()
    assert [each for part in COMMITTED for each in part] == [(5, 3), (6, 3)]
    narrower = StreamExecutionEnvironment.get_execution_environment(Configuration().set_string("execution.savepoint.path", path))
    with pytest.raises(StreamProgramError, match=r"cannot change: set_max_parallelism\(128\)"):
        _counting(narrower.set_max_parallelism(64), 6).execute()
    renamed = StreamExecutionEnvironment.get_execution_environment(Configuration().set_string("execution.savepoint.path", path))
    renamed.add_source(_Numbers(6), "numbers").uid("numbers").key_by(lambda x: x % 2).process(_Counting()).uid("other").print()
    with pytest.raises(StreamProgramError, match=r"state of the operators \['counting'.*uid\(\)"):
        renamed.execute()
    with pytest.raises(StreamProgramError, match="There is no savepoint"):
        _counting(
            StreamExecutionEnvironment(Configuration().set_string("execution.savepoint.path", str(tmp_path / "no"))), 6
        ).execute()


def test_a_run_in_another_thread_can_be_waited_for_and_gives_its_error():
    env = environment()
    env.from_collection([1, 2]).map(lambda x: 1 / 0).print()
    client = env.execute_async()
    with pytest.raises(ZeroDivisionError):
        client.get_job_execution_result().result(20)
    assert client.get_job_status().result().name == "FAILED"


def test_functions_have_parameters_and_metrics():
    class Metered(MapFunction):
        def open(self, runtime_context):
            self.factor = int(runtime_context.get_job_parameter("factor", "1"))
            self.counter = runtime_context.get_metrics_group().add_group("mine").counter("elements")

        def map(self, value):
            self.counter.inc()
            return value * self.factor

    env = environment()
    env.get_config().set_global_job_parameters({"factor": "3"})
    env.from_collection([1, 2]).map(Metered()).uid("metered").print()
    assert env.execute().get_all_accumulator_results() == {"metered/0": {"mine.elements": 2}}


class _Told:
    """What the context of a function says of its place."""

    def open(self, runtime_context):
        self.told = (
            runtime_context.get_job_parameter("factor"),
            runtime_context.get_task_name_with_subtasks(),
            runtime_context.get_max_number_of_parallel_subtasks(),
            runtime_context.get_attempt_number(),
        )
        self.counter = runtime_context.get_metrics_group().counter("elements")


class _ToldSource(_Told, SourceFunction):
    def run(self, ctx):
        self.counter.inc()
        yield self.told


class _ToldSink(_Told, SinkFunction):
    def invoke(self, value, context):
        self.counter.inc()
        TOLD.append((value, self.told, context.current_watermark()))
        if self.told[-1] == 0:
            raise RuntimeError("the first attempt")


TOLD = []


def test_functions_of_sources_and_sinks_are_told_where_they_run_and_have_metrics():
    TOLD.clear()
    env = environment().set_max_parallelism(16)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    env.get_config().set_global_job_parameters({"factor": "3"})
    env.add_source(_ToldSource(), "told").uid("in").add_sink(_ToldSink()).name("out").uid("out")
    assert env.execute().get_all_accumulator_results() == {"in/0": {"elements": 1}, "out/0": {"elements": 1}}
    assert [
        (("3", "Source: told (1/1)", 16, attempt), ("3", "out (1/1)", 16, attempt), MIN_TIMESTAMP) for attempt in (0, 1)
    ] == TOLD


def test_a_program_that_never_executes_its_sinks_is_told_so(caplog):
    env = environment()
    env.from_collection([1]).print()
    with caplog.at_level(logging.WARNING):
        del env
        import gc

        gc.collect()
    assert "never ran: call execute()" in caplog.text


def test_what_is_not_a_source_sink_or_strategy_is_refused_with_the_method_to_use():
    env = environment()
    stream = env.from_collection([1])
    for call, message in [
        (lambda: env.from_source(_Numbers(1), None, "x"), r"goes to add_source\(\)"),
        (lambda: env.add_source(5), "needs a SourceFunction"),
        (lambda: stream.sink_to(_Committing()), r"goes to add_sink\(\)"),
        (lambda: stream.assign_timestamps_and_watermarks(None), "needs a WatermarkStrategy"),
        (lambda: stream.map(5), "needs a callable or a MapFunction"),
        (lambda: stream.key_by(lambda x: x).window(None), "needs a WindowAssigner"),
        (lambda: stream.union(environment().from_collection([1])), "two environments"),
        (lambda: stream.get_side_output(OutputTag("x")).uid("y"), "belongs to an operator"),
        (lambda: stream.get_side_output("x"), r"get_side_output\(\) needs an OutputTag such as OutputTag\('late'\)"),
        (lambda: stream.key_by(first).count_window(2).side_output_late_data("x"), r"side_output_late_data\(\) needs an OutputTag"),
        (lambda: stream.union(5), r"union\(\) needs a stream, and was given 5"),
        (lambda: stream.connect([1]), r"connect\(\) needs a stream, and was given \[1\]"),
        (lambda: env.from_collection(5), r"from_collection\(\) needs a collection"),
    ]:
        with pytest.raises(StreamProgramError, match=message):
            call()


def test_a_class_of_python_is_no_declared_type():
    env = environment()
    stream = env.from_collection([1])
    for parameter, call in [
        ("type_info", lambda: env.from_collection([1], int)),
        ("output_type", lambda: stream.map(str, str)),
        ("type_info of OutputTag", lambda: stream.get_side_output(OutputTag("x", int))),
    ]:
        with pytest.raises(TypeError, match=rf"{parameter} takes a TypeInformation, not .*use one of Types, such as Types.INT\(\)"):
            call()
