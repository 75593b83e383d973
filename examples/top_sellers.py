"""The two best-selling products of each hour: a window of counts by product, and one of all products over it."""

from airflow_pipelines.datastream import StreamExecutionEnvironment, Time, WatermarkStrategy
from airflow_pipelines.datastream.functions import AggregateFunction, ProcessAllWindowFunction, WindowFunction
from airflow_pipelines.datastream.window import TumblingEventTimeWindows

HOUR = 3_600_000
SALES = [("tea", 3, 10), ("milk", 2, 20), ("rice", 9, 30), ("tea", 8, 40), ("milk", 1, HOUR + 1), ("rice", 4, HOUR + 2)]


class Total(AggregateFunction):
    """Adds up the numbers of pieces."""

    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class WithProduct(WindowFunction):
    """Puts the product before its total."""

    def apply(self, key, window, inputs):
        return [(key, total) for total in inputs]


class BestTwo(ProcessAllWindowFunction):
    """The hour, and what sold best in it."""

    def process(self, context, elements):
        best = sorted(elements, key=lambda each: -each[1])[:2]
        yield context.window().start // HOUR, best


env = StreamExecutionEnvironment.get_execution_environment()
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda sale, _: sale[2])
sales = env.from_collection(SALES).assign_timestamps_and_watermarks(strategy)
hourly = TumblingEventTimeWindows.of(Time.hours(1))
totals = sales.key_by(lambda sale: sale[0]).window(hourly).aggregate(Total(), WithProduct())
totals.window_all(hourly).process(BestTwo()).print("best")
env.execute("top sellers")
