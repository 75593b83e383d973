"""The class Pipeline, under the name by which users of the SDK import it."""

from __future__ import annotations

from airflow_pipelines.sdk.pipelines.pipeline import Pipeline

__all__ = ["Pipeline"]
