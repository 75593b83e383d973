"""The command line as a module: ``python -m airflow_pipelines.cli``."""

from __future__ import annotations

from airflow_pipelines.cli.commands import main

if __name__ == "__main__":
    main()
