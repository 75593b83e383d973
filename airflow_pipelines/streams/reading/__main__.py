"""``python -m airflow_pipelines.streams.reading``, started by :class:`~airflow_pipelines.streams.processes.ChildProcess`."""

from airflow_pipelines.streams.reading.server import serve

if __name__ == "__main__":
    serve()
