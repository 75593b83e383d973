"""The class PipelineBuilder, under the name by which users of the SDK import it."""

from __future__ import annotations

from airflow_pipelines.sdk.pipeline_builder import PipelineBuilder

__all__ = ["PipelineBuilder"]
