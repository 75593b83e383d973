"""How a pipeline runs, under the name by which users of the SDK import it."""

from __future__ import annotations

from airflow_pipelines.contract.runtime_config import Resources, RuntimeConfig, Storage

__all__ = ["Resources", "RuntimeConfig", "Storage"]
