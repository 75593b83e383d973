"""An element every some milliseconds through a function with keys and state: ``one_element.py ELEMENTS PAUSE_S``.

The relation ``passed`` has for each when the source gave it, and when the next function had it, in ns.
"""

import sys
import time

from airflow_pipelines.datastream import KeyedProcessFunction, Row, SourceFunction, StreamExecutionEnvironment, Types
from airflow_pipelines.datastream.state import ValueStateDescriptor

KEYS = 100


class Paced(SourceFunction):
    """Waits, and gives the time."""

    is_bounded = True

    def run(self, ctx):  # noqa: ARG002
        """Give the elements."""
        for _ in range(int(sys.argv[1])):
            time.sleep(float(sys.argv[2]))
            yield time.time_ns()


class Count(KeyedProcessFunction):
    """Reads and writes state."""

    def open(self, runtime_context):
        """Begin."""
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):  # noqa: ARG002
        """Count it."""
        self.count.update((self.count.value() or 0) + 1)
        yield value


env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
counted = env.add_source(Paced(), "paced", Types.LONG()).uid("paced").key_by(lambda at: at % KEYS).process(Count()).uid("count")
passed = counted.rebalance().map(lambda at: Row(given=at, seen=time.time_ns())).uid("seen")
passed.to_relation("passed", "given BIGINT, seen BIGINT").uid("passed")
env.execute("one element")
