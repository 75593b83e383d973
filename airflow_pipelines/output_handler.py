"""The listener to the changes of a view, under the name by which users of the SDK import it."""

from __future__ import annotations

from airflow_pipelines.sdk.output_handler import OutputHandler

__all__ = ["OutputHandler"]
