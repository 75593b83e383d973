"""Which notion of time made a timer fire."""

from airflow_pipelines.streams.timers import TimeDomain

__all__ = ["TimeDomain"]
