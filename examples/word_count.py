"""Counts words, and gives each update."""

from airflow_pipelines.datastream import StreamExecutionEnvironment

LINES = ["to be or not to be", "to do is to be"]

env = StreamExecutionEnvironment.get_execution_environment()
words = env.from_collection(LINES).flat_map(str.split)
words.map(lambda word: (word, 1)).key_by(lambda pair: pair[0]).sum(1).print("count")
env.execute("word count")
