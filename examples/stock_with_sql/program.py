"""Products that run short, from a view of SQL whose rows change, and as a relation from which they go when there is enough again.

``airflow-pipelines run examples/stock_with_sql/program.py --sql examples/stock_with_sql/tables.sql --name stock --keep-running``
runs both as one pipeline. In Python, where ``pipeline = Pipeline.get("stock", PipelineClient())``, ``pipeline.query("select * from
purchases")`` shows what is to be bought, and ``pipeline.input_json("movements", [{"product": "lamp", "pieces": 8}])`` lets
something move. ``airflow-pipelines pipelines stop stock`` ends it.
"""

from airflow_pipelines.datastream import Row, RowKind, StreamExecutionEnvironment, Types
from airflow_pipelines.datastream.functions import KeyedProcessFunction
from airflow_pipelines.datastream.state import ValueStateDescriptor

SHORT, ENOUGH = 5, 10


class Shortages(KeyedProcessFunction):
    """A product is short below 5 pieces, and stays so until there are 10."""

    def open(self, runtime_context):
        self.is_short = runtime_context.get_state(ValueStateDescriptor("is_short", Types.BOOLEAN()))

    def process_element(self, value, ctx):
        if value.get_row_kind() == RowKind.DELETE:
            # An update of the view is a row that goes and one that comes.
            return
        if value.pieces < (ENOUGH if self.is_short.value() else SHORT):
            self.is_short.update(True)
            yield Row(product=value.product, pieces=value.pieces)
        elif self.is_short.value():
            self.is_short.clear()
            yield Row.of_kind(RowKind.DELETE, product=value.product, pieces=value.pieces)


env = StreamExecutionEnvironment.get_execution_environment()
# More movements may be pushed when the connector has ended that makes the first ones up.
stock = env.from_relation("stock", changes=True, stays_open=True).uid("stock")
shortages = stock.key_by(lambda row: row.product, key_type=Types.STRING()).process(Shortages()).name("shortages").uid("shortages")
shortages.print("shortage")
shortages.to_relation("shortages", "product VARCHAR, pieces BIGINT", primary_key="product").uid("shortages_relation")
env.execute("stock with SQL")
