"""Averages of each ten seconds; a reading that comes too late goes to an output of its own."""

from airflow_pipelines.datastream import (
    Duration,
    OutputTag,
    StreamExecutionEnvironment,
    Time,
    WatermarkGenerator,
    WatermarkStrategy,
)
from airflow_pipelines.datastream.functions import AggregateFunction
from airflow_pipelines.datastream.window import TumblingEventTimeWindows

READINGS = [(20.0, 1_000), (22.0, 4_000), (30.0, 12_000), (24.0, 8_000), (28.0, 26_000), (99.0, 2_000)]
LATE = OutputTag("late")


class Mean(AggregateFunction):
    """Keeps the sum and the number."""

    def create_accumulator(self):
        return 0.0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value[0], accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class AfterEachReading(WatermarkGenerator):
    """A watermark five seconds behind the latest reading. A collection gets none before its end otherwise."""

    def __init__(self):
        self.latest = 0

    def on_event(self, event, event_timestamp, output):
        self.latest = max(self.latest, event_timestamp)
        output.emit_watermark(self.latest - Duration.of_seconds(5).to_millis() - 1)

    def on_periodic_emit(self, output):
        pass


env = StreamExecutionEnvironment.get_execution_environment()
strategy = WatermarkStrategy.for_generator(AfterEachReading).with_timestamp_assigner(lambda reading, _: reading[1])
readings = env.from_collection(READINGS).assign_timestamps_and_watermarks(strategy)
means = readings.window_all(TumblingEventTimeWindows.of(Time.seconds(10))).side_output_late_data(LATE).aggregate(Mean())
means.print("mean")
means.get_side_output(LATE).print("late")
env.execute("late data")
