"""The revenue of each customer in each hour of event time, from a view of SQL, and as a relation that another view joins.

``airflow-pipelines run examples/orders_with_sql/program.py --sql examples/orders_with_sql/tables.sql --name orders --keep-running``
runs both as one pipeline, and in Python ``Pipeline.get("orders", PipelineClient()).query("select * from revenue_by_country")``
shows what the last view has. ``airflow-pipelines pipelines stop orders`` ends it. An hour is there when an order of a later one
has come.
"""

from airflow_pipelines.datastream import StreamExecutionEnvironment, Time, Types, WatermarkStrategy
from airflow_pipelines.datastream.functions import AggregateFunction, ProcessWindowFunction
from airflow_pipelines.datastream.window import TumblingEventTimeWindows

MINUTE = 60_000
HOUR = 60 * MINUTE


class Revenue(AggregateFunction):
    """Adds up amounts, and counts orders."""

    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        revenue, orders = accumulator
        return revenue + value.amount, orders + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class WithHour(ProcessWindowFunction):
    """Says whose revenue it is, and when."""

    def process(self, key, context, elements):
        for revenue, orders in elements:
            yield {"customer": key, "hour": context.window().start // HOUR, "revenue": revenue, "orders": orders}


env = StreamExecutionEnvironment.get_execution_environment()
by_minute = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda order, _: order.minute * MINUTE)
# More orders may be pushed when the connector has ended that makes the first ones up.
orders = env.from_relation("paid_orders", stays_open=True).uid("orders").assign_timestamps_and_watermarks(by_minute)
hourly = orders.key_by(lambda order: order.customer, key_type=Types.STRING()).window(TumblingEventTimeWindows.of(Time.hours(1)))
revenue = hourly.aggregate(Revenue(), WithHour()).name("revenue").uid("revenue")
revenue.print("revenue")
columns = "customer VARCHAR, hour BIGINT, revenue DECIMAL(10, 2), orders BIGINT"
revenue.to_relation("hourly_revenue", columns, primary_key=["customer", "hour"]).uid("hourly_revenue")
env.execute("orders with SQL")
