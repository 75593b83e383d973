"""Lets each event pass once: its number is remembered for an hour."""

from airflow_pipelines.datastream import StreamExecutionEnvironment, Time
from airflow_pipelines.datastream.functions import FilterFunction
from airflow_pipelines.datastream.state import StateTtlConfig, ValueStateDescriptor

EVENTS = [(1, "created"), (2, "paid"), (1, "created"), (3, "sent"), (2, "paid")]


class FirstOnly(FilterFunction):
    """Keeps what was not seen before."""

    def open(self, runtime_context):
        seen = ValueStateDescriptor("seen")
        seen.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.seen = runtime_context.get_state(seen)

    def filter(self, value):
        if self.seen.value():
            return False
        self.seen.update(True)
        return True


env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection(EVENTS).key_by(lambda event: event[0]).filter(FirstOnly()).print("event")
env.execute("deduplication")
