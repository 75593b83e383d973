"""The notion of time of a timer."""

from airflow_pipelines.streams.timers import TimeDomain

__all__ = ["TimeDomain"]
