"""Joins orders with payments by their number; an order that is not paid within ten seconds is reported."""

from airflow_pipelines.datastream import StreamExecutionEnvironment, WatermarkStrategy
from airflow_pipelines.datastream.functions import KeyedCoProcessFunction
from airflow_pipelines.datastream.state import ValueStateDescriptor

ORDERS = [(1, "book", 0), (2, "lamp", 1_000), (3, "desk", 2_000)]
PAYMENTS = [(2, 30, 4_000), (1, 12, 5_000)]


class OrderWithPayment(KeyedCoProcessFunction):
    """Keeps what came first until the other comes."""

    def open(self, runtime_context):
        self.order = runtime_context.get_state(ValueStateDescriptor("order"))
        self.payment = runtime_context.get_state(ValueStateDescriptor("payment"))

    def process_element1(self, value, ctx):
        self.order.update(value)
        ctx.timer_service().register_event_time_timer(value[2] + 10_000)
        yield from self._paid()

    def process_element2(self, value, ctx):
        self.payment.update(value)
        yield from self._paid()

    def _paid(self):
        order, payment = self.order.value(), self.payment.value()
        if order is not None and payment is not None:
            self.order.clear()
            self.payment.clear()
            yield f"{order[1]} was paid with {payment[1]}"

    def on_timer(self, timestamp, ctx):
        if self.order.value() is not None:
            yield f"{self.order.value()[1]} was not paid"


env = StreamExecutionEnvironment.get_execution_environment()
strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda element, _: element[2])
orders = env.from_collection(ORDERS).assign_timestamps_and_watermarks(strategy)
payments = env.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy)
orders.connect(payments).key_by(lambda order: order[0], lambda payment: payment[0]).process(OrderWithPayment()).print()
env.execute("join")
