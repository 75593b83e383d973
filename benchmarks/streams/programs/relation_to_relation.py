"""Rows of a table, each with one more column, as a relation."""

from airflow_pipelines.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
rows = env.from_relation("given").uid("given")
more = rows.map(lambda row: (row.key, row.number, row.fruit, row.number + 1)).uid("more")
more.to_relation("counted", "key BIGINT, number BIGINT, fruit VARCHAR, n BIGINT").uid("counted")
env.execute("relation to relation")
