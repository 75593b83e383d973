"""Task groups that wrap the work of a DAG on a pipeline."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_pipelines.task_groups.managed import managed_pipeline
    from airflow_pipelines.task_groups.transaction import pipeline_transaction

__all__ = ["managed_pipeline", "pipeline_transaction"]

_MODULES = {"managed_pipeline": "managed", "pipeline_transaction": "transaction"}


def __getattr__(name: str) -> Any:
    """Return the task group with a name.

    :raises AttributeError: if there is none
    """
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
