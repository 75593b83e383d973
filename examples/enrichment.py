"""Adds the rate of its currency to each order. Rates are broadcast; orders wait until theirs is known."""

from airflow_pipelines.datastream import StreamExecutionEnvironment
from airflow_pipelines.datastream.functions import KeyedBroadcastProcessFunction
from airflow_pipelines.datastream.state import ListStateDescriptor, MapStateDescriptor

ORDERS = [("EUR", 10.0), ("JPY", 1000.0), ("EUR", 5.0)]
RATES = [("EUR", 1.25), ("JPY", 0.0078125)]
RATE = MapStateDescriptor("rates")
WAITING = ListStateDescriptor("waiting")


class InDollars(KeyedBroadcastProcessFunction):
    """Orders are keyed by currency, so each task has all that wait for a rate."""

    def open(self, runtime_context):
        self.waiting = runtime_context.get_list_state(WAITING)

    def process_element(self, value, ctx):
        currency, amount = value
        rate = ctx.get_broadcast_state(RATE).get(currency)
        if rate is None:
            self.waiting.add(amount)
        else:
            yield currency, amount, amount * rate

    def process_broadcast_element(self, value, ctx):
        currency, rate = value
        ctx.get_broadcast_state(RATE).put(currency, rate)
        released = []

        def release(key, waiting):
            if key == currency:
                released.extend(waiting.get())
                waiting.clear()

        ctx.apply_to_keyed_state(WAITING, release)
        for amount in released:
            yield currency, amount, amount * rate


env = StreamExecutionEnvironment.get_execution_environment()
orders = env.from_collection(ORDERS).key_by(lambda order: order[0])
enriched = orders.connect(env.from_collection(RATES).broadcast(RATE)).process(InDollars())
enriched.print("dollars")
env.execute("enrichment")
