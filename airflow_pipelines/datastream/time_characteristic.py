"""The notion of time of a program, which sets how often watermarks are generated; windows take that of their assigner."""

from __future__ import annotations

from enum import Enum


class TimeCharacteristic(Enum):
    """A notion of time: the machine's clock, the time of arrival at a source, or the time that elements carry.

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, TimeCharacteristic
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> env.set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    >>> env.get_stream_time_characteristic().name, env.get_config().get_auto_watermark_interval()
    ('ProcessingTime', 0)
    """

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2
