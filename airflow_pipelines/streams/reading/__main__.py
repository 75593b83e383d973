"""Entry point of the process that reads sources, as :class:`~airflow_pipelines.streams.processes.ChildProcess` starts it."""

from airflow_pipelines.streams.reading.server import serve

if __name__ == "__main__":
    serve()
