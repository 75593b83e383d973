"""Entry point of the process of a program, as :class:`~airflow_pipelines.streams.processes.ChildProcess` starts it."""

from __future__ import annotations

from airflow_pipelines.streams.worker.process import main

if __name__ == "__main__":
    main()
