"""What tests of stream programs share."""

from pathlib import Path

from airflow_pipelines.datastream.common import WatermarkStrategy
from airflow_pipelines.datastream.environment import StreamExecutionEnvironment
from airflow_pipelines.streams.watermarks import WatermarkGenerator
from airflow_pipelines.streams.window_functions import ProcessWindowFunction

IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A folder in memory, where there is one, for tests that make thousands of databases: a disk takes long to sync a file."""


def environment(parallelism=1):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


class EachElement(WatermarkGenerator):
    """The watermark of monotonous timestamps, after each element."""

    def __init__(self, delay=0):
        self.delay = delay
        self.latest = -(2**62)

    def on_event(self, event, event_timestamp, output):
        self.latest = max(self.latest, event_timestamp)
        output.emit_watermark(self.latest - self.delay - 1)

    def on_periodic_emit(self, output):
        pass


def timed(stream, position=1, delay=None):
    """The timestamp is a field of the element; with a delay, a watermark follows each element."""
    strategy = (
        WatermarkStrategy.for_monotonous_timestamps()
        if delay is None
        else WatermarkStrategy.for_generator(lambda: EachElement(delay))
    )
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda value, _: value[position]))


class Contents(ProcessWindowFunction):
    """Each evaluation: key, window, elements."""

    def process(self, key, context, elements):
        yield key, context.window(), list(elements)


def first(value):
    return value[0]


def second(value):
    return value[1]


def collected(stream):
    return list(stream.execute_and_collect())
