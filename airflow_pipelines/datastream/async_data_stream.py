"""Asynchronous requests to other systems about the elements of a stream."""

from __future__ import annotations

from typing import Any

from airflow_pipelines.datastream.common import checks
from airflow_pipelines.datastream.common.time import Duration, Time
from airflow_pipelines.datastream.data_stream import DataStream
from airflow_pipelines.datastream.given_functions import checked_function
from airflow_pipelines.streams.async_functions import NO_RETRY_STRATEGY, AsyncFunction, AsyncRetryStrategy
from airflow_pipelines.streams.operators.async_wait import AsyncWait

_DEFAULT_CAPACITY = 100


class AsyncDataStream:
    """The application of an ``AsyncFunction`` to a stream.

    Requests of a task run at the same time, up to a capacity. A step ends when all its requests are answered, so a checkpoint never
    has one under way: after a failure, elements that are read again are asked about again.
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        capacity: int = _DEFAULT_CAPACITY,
        output_type: Any = None,
    ) -> DataStream:
        """Ask about each element, and give results in the order of the answers.

        Watermarks keep their places: results for the elements before a watermark come before it.

        :param data_stream: the stream
        :param async_function: the function that asks
        :param timeout: the time limit of a request
        :param capacity: the maximum number of requests at the same time in a task
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        return AsyncDataStream.unordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        async_retry_strategy: AsyncRetryStrategy,
        capacity: int = _DEFAULT_CAPACITY,
        output_type: Any = None,
    ) -> DataStream:
        """Ask about each element, more than once if need be, and give results in the order of the answers.

        :param data_stream: the stream
        :param async_function: the function that asks
        :param timeout: the time limit of a request with all its attempts
        :param async_retry_strategy: the strategy by which requests are repeated
        :param capacity: the maximum number of requests at the same time in a task
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        spec = _async_wait(async_function, timeout, async_retry_strategy, capacity, is_ordered=False)
        return checks.instance("data_stream", data_stream, DataStream)._then("Async Wait", spec, output_type)

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        capacity: int = _DEFAULT_CAPACITY,
        output_type: Any = None,
    ) -> DataStream:
        """Ask about each element, and give results in the order of the elements.

        :param data_stream: the stream
        :param async_function: the function that asks
        :param timeout: the time limit of a request
        :param capacity: the maximum number of requests at the same time in a task
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        return AsyncDataStream.ordered_wait_with_retry(
            data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type
        )

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunction[Any, Any],
        timeout: Time | Duration,
        async_retry_strategy: AsyncRetryStrategy,
        capacity: int = _DEFAULT_CAPACITY,
        output_type: Any = None,
    ) -> DataStream:
        """Ask about each element, more than once if need be, and give results in the order of the elements.

        :param data_stream: the stream
        :param async_function: the function that asks
        :param timeout: the time limit of a request with all its attempts
        :param async_retry_strategy: the strategy by which requests are repeated
        :param capacity: the maximum number of requests at the same time in a task
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        spec = _async_wait(async_function, timeout, async_retry_strategy, capacity, is_ordered=True)
        return checks.instance("data_stream", data_stream, DataStream)._then("Async Wait", spec, output_type)


def _async_wait(
    function: AsyncFunction[Any, Any], timeout: Time | Duration, retries: AsyncRetryStrategy, capacity: int, *, is_ordered: bool
) -> AsyncWait:
    checked_function(function, AsyncFunction, "an asynchronous wait")
    limit = timeout.to_millis() if isinstance(timeout, Duration) else checks.instance("timeout", timeout, Time).to_milliseconds()
    strategy = checks.instance("async_retry_strategy", retries, AsyncRetryStrategy)
    return AsyncWait(
        function, checks.integer("timeout in ms", limit, 1), checks.integer("capacity", capacity, 1), is_ordered, strategy
    )
