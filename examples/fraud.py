"""Finds accounts with a tiny payment that is followed by a large one within a minute."""

from airflow_pipelines.datastream import StreamExecutionEnvironment, WatermarkStrategy
from airflow_pipelines.datastream.functions import KeyedProcessFunction
from airflow_pipelines.datastream.state import ValueStateDescriptor

MINUTE = 60_000
PAYMENTS = [
    ("alice", 0.10, 0),
    ("bob", 0.20, 5_000),
    ("alice", 900.00, 30_000),
    ("carol", 700.00, 40_000),
    ("bob", 950.00, 100_000),
]


class TinyThenLarge(KeyedProcessFunction):
    """Remembers a tiny payment for a minute; the timer only gives its memory back."""

    def open(self, runtime_context):
        self.tiny_until = runtime_context.get_state(ValueStateDescriptor("tiny until"))

    def process_element(self, payment, ctx):
        account, amount, at = payment
        if amount > 500 and (self.tiny_until.value() or 0) >= at:
            yield f"{account} paid {amount:.2f} within a minute of a tiny payment"
        if amount < 1:
            self.tiny_until.update(at + MINUTE)
            ctx.timer_service().register_event_time_timer(at + MINUTE)

    def on_timer(self, timestamp, ctx):
        if self.tiny_until.value() == timestamp:
            self.tiny_until.clear()


env = StreamExecutionEnvironment.get_execution_environment()
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda payment, _: payment[2])
payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy)
payments.key_by(lambda payment: payment[0]).process(TinyThenLarge()).print("alert")
env.execute("fraud")
