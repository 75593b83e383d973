"""Checks that each order goes its way: created, paid, sent, received. What is known of an order is forgotten after a week."""

from airflow_pipelines.datastream import StreamExecutionEnvironment, Time
from airflow_pipelines.datastream.functions import FlatMapFunction
from airflow_pipelines.datastream.state import StateTtlConfig, ValueStateDescriptor

NEXT = {None: {"created"}, "created": {"paid", "cancelled"}, "paid": {"sent", "cancelled"}, "sent": {"received"}}
EVENTS = [
    (1, "created"), (2, "created"), (1, "paid"), (2, "sent"), (1, "sent"),
    (3, "paid"), (2, "paid"), (1, "received"), (2, "cancelled"), (2, "sent"),
]  # fmt: skip


class Check(FlatMapFunction):
    """A state machine for each order. An event that is not possible changes nothing, and is reported."""

    def open(self, runtime_context):
        state = ValueStateDescriptor("state")
        week = StateTtlConfig.new_builder(Time.days(7)).set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)
        state.enable_time_to_live(week.build())
        self.state = runtime_context.get_state(state)

    def flat_map(self, value):
        order, event = value
        state = self.state.value()
        if event in NEXT.get(state, ()):
            self.state.update(event)
            if event not in NEXT:
                yield f"order {order} has ended: {event}"
        else:
            yield f"order {order} cannot be {event}: it is {state or 'not known'}"


env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection(EVENTS).key_by(lambda event: event[0]).flat_map(Check()).print()
env.execute("order states")
