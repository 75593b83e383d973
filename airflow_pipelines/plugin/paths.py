"""The addresses of Airflow, as browsers see them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlsplit

from airflow.configuration import conf


def airflow_path() -> str:
    """Return the path of ``[api] base_url``, without a slash at its end: empty if Airflow has a host of its own."""
    return urlsplit(conf.get("api", "base_url", fallback="/")).path.rstrip("/")


def request_page(task_instance: Any) -> str:
    """Return the page of Airflow on which a person answers the request of a task instance.

    :param task_instance: the task instance that waits
    """
    dag, run, task = (quote(part, safe="") for part in (task_instance.dag_id, task_instance.run_id, task_instance.task_id))
    mapped = f"/mapped/{task_instance.map_index}" if task_instance.map_index >= 0 else ""
    return f"{airflow_path()}/dags/{dag}/runs/{run}/tasks/{task}{mapped}/required_actions"


def request_answer(task_instance: Any) -> str:
    """Return the address of Airflow's REST API that takes the answer to the request of a task instance.

    :param task_instance: the task instance that waits
    """
    dag, run, task = (quote(part, safe="") for part in (task_instance.dag_id, task_instance.run_id, task_instance.task_id))
    run_path = f"{airflow_path()}/api/v2/dags/{dag}/dagRuns/{run}"
    return f"{run_path}/taskInstances/{task}/{task_instance.map_index}/hitlDetails"
