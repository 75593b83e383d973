"""What both refuse."""

from __future__ import annotations

from tools.compare_flink.case import case


@case("errors: a function that raises", fails=True)
def raises(api, env, given):
    """Division by zero."""
    return env.from_collection([1, 0]).map(lambda number: 1 // number)


@case("errors: partitioning a stream with keys", fails=True)
def keyed_rebalance(api, env, given):
    """Keys say where elements go."""
    return env.from_collection([1]).key_by(lambda number: number).rebalance()


@case("errors: project of what is no tuple", fails=True)
def project(api, env, given):
    """There are no fields."""
    return env.from_collection([1], api.Types.LONG()).project(0)


@case("errors: timers without keys", fails=True)
def timers(api, env, given):
    """Timers belong to keys."""

    class Timer(api.ProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(1)
            yield value

    return env.from_collection([1]).process(Timer())


@case("errors: state without keys", fails=True)
def state(api, env, given):
    """State belongs to keys."""

    class State(api.MapFunction):
        def open(self, runtime_context):
            self.state = runtime_context.get_state(api.ValueStateDescriptor("state", api.Types.LONG()))

        def map(self, value):
            self.state.update(value)
            return value

    return env.from_collection([1]).map(State())


@case("errors: a value that a declared type does not take", fails=True)
def declared(api, env, given):
    """Text is no number."""
    return env.from_collection(["x"]).map(lambda text: text, api.Types.LONG())


@case("errors: a partitioner that names a task that is not there", fails=True)
def partitioner(api, env, given):
    """There are two."""
    stream = env.from_collection([1]).partition_custom(lambda key, tasks: tasks + 1, lambda number: number)
    return stream.map(lambda number: number).set_parallelism(2)
