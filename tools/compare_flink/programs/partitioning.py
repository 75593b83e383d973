"""Programs that distribute elements over tasks."""

from __future__ import annotations

from tools.compare_flink.case import Order, Shape, case
from tools.compare_flink.inputs import events


def _task(api):
    class Task(api.MapFunction):
        def open(self, runtime_context):
            self.index = runtime_context.get_index_of_this_subtask()

        def map(self, value):
            return self.index, value

    return Task()


# PyFlink tells the number of tasks to a partitioner only when a program runs by execute(), so the results are lines of text.
_custom = {"inputs": events, "order": Order.NONE, "shape": Shape.TEXT}


@case("partitioning: partition_custom", **_custom)
def custom(api, env, given):
    """Choose the task by a function."""
    stream = env.from_collection(given).partition_custom(lambda key, tasks: (key + 1) % tasks, lambda event: event[2])
    return stream.map(_task(api)).set_parallelism(3).map(str, api.Types.STRING())


@case("partitioning: partition_custom with objects", **_custom)
def custom_objects(api, env, given):
    """Choose the task by classes."""

    class Number(api.KeySelector):
        def get_key(self, value):
            return value[2]

    class Modulo(api.Partitioner):
        def partition(self, key, num_partitions):
            return key % num_partitions

    stream = env.from_collection(given).partition_custom(Modulo(), Number()).map(_task(api)).set_parallelism(2)
    return stream.map(str, api.Types.STRING())


@case("partitioning: broadcast", inputs=events, order=Order.BY_KEY)
def broadcast(api, env, given):
    """Send every element to every task."""
    return env.from_collection(given).broadcast().map(_task(api)).set_parallelism(2)


@case("partitioning: rebalance, rescale and shuffle lose nothing", inputs=events, order=Order.NONE)
def spread(api, env, given):
    """Distribute elements without a defined task."""
    stream = env.from_collection(given).rebalance().map(lambda event: event).set_parallelism(2)
    return stream.shuffle().map(lambda event: event).set_parallelism(3).rescale().map(lambda event: ("all", event))


@case("partitioning: forward keeps the order", inputs=events)
def forward(api, env, given):
    """Pass elements from one task to one task."""
    return env.from_collection(given).map(lambda event: event).forward().map(lambda event: event[2])


@case("partitioning: elements of a key keep their order over several tasks", inputs=events, order=Order.BY_KEY)
def keyed(api, env, given):
    """Distribute elements by key."""
    return env.from_collection(given).key_by(lambda event: event[0]).map(lambda event: event).set_parallelism(3)
