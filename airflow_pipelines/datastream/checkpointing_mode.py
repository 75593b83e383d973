"""The guarantee of checkpoints after a failure."""

from __future__ import annotations

from enum import Enum


class CheckpointingMode(Enum):
    """The guarantee of a checkpoint for the state of functions: each element counts exactly once, or at least once.

    >>> from airflow_pipelines.datastream import CheckpointingMode, StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment().enable_checkpointing(60_000, CheckpointingMode.AT_LEAST_ONCE)
    >>> env.get_checkpointing_mode().name
    'AT_LEAST_ONCE'
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
