"""Programs that both packages refuse."""

from __future__ import annotations

from tools.compare_flink.case import case


@case("errors: a function that raises", fails=True)
def raises(api, env, given):
    """Divide by zero."""
    return env.from_collection([1, 0]).map(lambda number: 1 // number)


@case("errors: partitioning a stream with keys", fails=True)
def keyed_rebalance(api, env, given):
    """Rebalance a keyed stream, although its keys determine the task."""
    return env.from_collection([1]).key_by(lambda number: number).rebalance()


@case("errors: project of what is no tuple", fails=True)
def project(api, env, given):
    """Project elements that have no fields."""
    return env.from_collection([1], api.Types.LONG()).project(0)


@case("errors: timers without keys", fails=True)
def timers(api, env, given):
    """Register a timer without a key."""

    class Timer(api.ProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(1)
            yield value

    return env.from_collection([1]).process(Timer())


@case("errors: state without keys", fails=True)
def state(api, env, given):
    """Use state without a key."""

    class State(api.MapFunction):
        def open(self, runtime_context):
            self.state = runtime_context.get_state(api.ValueStateDescriptor("state", api.Types.LONG()))

        def map(self, value):
            self.state.update(value)
            return value

    return env.from_collection([1]).map(State())


@case("errors: a value that a declared type does not take", fails=True)
def declared(api, env, given):
    """Return a text for a declared number."""
    return env.from_collection(["x"]).map(lambda text: text, api.Types.LONG())


@case("errors: a partitioner that names a task that is not there", fails=True)
def partitioner(api, env, given):
    """Return the number of a third task, although there are two."""
    stream = env.from_collection([1]).partition_custom(lambda key, tasks: tasks + 1, lambda number: number)
    return stream.map(lambda number: number).set_parallelism(2)
