"""Puts the clicks of each user into sessions that end after 30 s without a click."""

from airflow_pipelines.datastream import StreamExecutionEnvironment, Time, WatermarkStrategy
from airflow_pipelines.datastream.functions import ProcessWindowFunction
from airflow_pipelines.datastream.window import EventTimeSessionWindows

CLICKS = [("ann", "home", 0), ("bob", "home", 2_000), ("ann", "cart", 20_000), ("ann", "home", 90_000), ("bob", "help", 31_000)]


class Summary(ProcessWindowFunction):
    """User, length of the session in seconds, pages."""

    def process(self, key, context, elements):
        times = [at for _, _, at in elements]
        yield key, (max(times) - min(times)) // 1000, [page for _, page, _ in elements]


env = StreamExecutionEnvironment.get_execution_environment()
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda click, _: click[2])
clicks = env.from_collection(CLICKS).assign_timestamps_and_watermarks(strategy)
sessions = clicks.key_by(lambda click: click[0]).window(EventTimeSessionWindows.with_gap(Time.seconds(30)))
sessions.process(Summary()).print("session")
env.execute("sessions")
