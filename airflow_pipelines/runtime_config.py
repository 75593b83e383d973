"""The settings of a pipeline's process, under the name by which users of the SDK import them."""

from __future__ import annotations

from airflow_pipelines.sdk.runtime_config import Resources, RuntimeConfig, Storage

__all__ = ["Resources", "RuntimeConfig", "Storage"]
