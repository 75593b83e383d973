"""Errors of stream programs."""

from __future__ import annotations


class ExplainedError(Exception):
    """An error whose message says what the program did wrong, so that lines of this package in its traceback add nothing."""


class StreamProgramError(ExplainedError):
    """An error of a program that asks for something a stream cannot do. The message says where, and what to do instead.

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment, StreamProgramError
    >>> keyed = StreamExecutionEnvironment.get_execution_environment().from_collection([1, 2]).key_by(lambda number: number % 2)
    >>> try:
    ...     keyed.rebalance()
    ... except StreamProgramError as error:
    ...     print(error)
    rebalance is not possible on a stream with keys: elements with the same key stay together; call it before key_by().
    """


class NoKeyError(StreamProgramError):
    """An error of a program that asks for state or timers where there is no key."""


class FunctionTimeLimitError(StreamProgramError):
    """An error of a user's function of which one call took longer than the limit."""
