"""One of the shared workloads over numbers, deployed: ``many_elements.py WORKLOAD ELEMENTS``. Results are thrown away."""

import sys
from types import SimpleNamespace

from discard import Discard
from workloads import WORKLOADS

from airflow_pipelines import datastream
from airflow_pipelines.datastream import functions, state, window
from airflow_pipelines.datastream.connectors import NumberSequenceSource

workload, elements = WORKLOADS[sys.argv[1]], int(sys.argv[2])
names = {name: value for module in (state, window, functions, datastream) for name, value in vars(module).items()}
api = SimpleNamespace(**{name: value for name, value in names.items() if isinstance(value, type)})
env = datastream.StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
source = NumberSequenceSource(0, elements - 1)
numbers = env.from_source(source, datastream.WatermarkStrategy.no_watermarks(), "numbers", datastream.Types.LONG()).uid("numbers")
workload.build(api, numbers, workload.keys).uid("results").sink_to(Discard()).uid("discard")
env.execute(workload.name)
