"""One poll of a pipeline for a condition, from a worker or from the triggerer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from airflow_pipelines.contract.error_codes import ErrorCode
from airflow_pipelines.hooks.conditions import Condition, Observation, Request, is_transient
from airflow_pipelines.hooks.pipeline_events import PipelineWatch, Poll
from airflow_pipelines.sdk.client import AsyncPipelineClient, PipelineClient
from airflow_pipelines.sdk.errors import PipelineAPIError
from airflow_pipelines.sdk.wire import path_of

_STATISTICS = Request("/stats")
_BOOTSTRAP = ("Bootstrapping", "ConcurrentBootstrapping")
_STATUS = {"selector": "status"}
_ONE_TRY = 0.0
"""The outage budget of a single try: a caller that polls repeatedly tolerates outages itself."""


def observe(client: PipelineClient, name: str, condition: Condition) -> Observation:
    """Poll a pipeline once.

    :param client: the client
    :param name: the pipeline's name
    :param condition: the condition, which names the request to make beside the descriptor
    :returns: the observation
    :raises PipelinesError: if the service cannot be asked; a refusal that says something about the pipeline is in the observation
    """
    path = path_of("pipelines", name)
    descriptor: dict[str, Any] | None
    try:
        descriptor = client.request("GET", path, params=_STATUS, outage_budget_s=_ONE_TRY)
    except PipelineAPIError as error:
        if error.error_code != ErrorCode.UNKNOWN_PIPELINE_NAME:
            raise
        descriptor = None
    request = _request(condition, descriptor)
    answer, refusal = None, None
    if request is not None:
        try:
            answer = client.request("GET", path + request.tail, params=request.params, outage_budget_s=_ONE_TRY)
        except PipelineAPIError as error:
            refusal = _refusal_or_raise(error)
    return Observation(descriptor, time.time(), answer, refusal)


async def observe_async(client: AsyncPipelineClient, name: str, condition: Condition) -> Observation:
    """Poll a pipeline once without blocking the event loop; the asynchronous form of :func:`observe`.

    :param client: the client
    :param name: the pipeline's name
    :param condition: the condition, which names the request to make beside the descriptor
    :returns: the observation
    :raises PipelinesError: as :func:`observe` does
    """
    path = path_of("pipelines", name)
    descriptor: dict[str, Any] | None
    try:
        descriptor = await client.request("GET", path, params=_STATUS, outage_budget_s=_ONE_TRY)
    except PipelineAPIError as error:
        if error.error_code != ErrorCode.UNKNOWN_PIPELINE_NAME:
            raise
        descriptor = None
    request = _request(condition, descriptor)
    answer, refusal = None, None
    if request is not None:
        try:
            answer = await client.request("GET", path + request.tail, params=request.params, outage_budget_s=_ONE_TRY)
        except PipelineAPIError as error:
            refusal = _refusal_or_raise(error)
    return Observation(descriptor, time.time(), answer, refusal)


def _request(condition: Condition, descriptor: Mapping[str, Any] | None) -> Request | None:
    """Return the request for a pipeline's host: the one of the condition or, while changed views are evaluated, the statistics."""
    if not _asks_runtime(descriptor):
        return None
    bootstraps = descriptor is not None and descriptor.get("deployment_status") in _BOOTSTRAP
    return condition.request() or (_STATISTICS if bootstraps else None)


def _asks_runtime(descriptor: Mapping[str, Any] | None) -> bool:
    """Return True if a descriptor says that there is a host to ask."""
    return descriptor is not None and descriptor.get("deployment_resources_status") == "Provisioned"


def _refusal_or_raise(error: PipelineAPIError) -> PipelineAPIError:
    """Return the error if it says something about the pipeline.

    :raises PipelineAPIError: if the error is a transient failure of the service
    """
    if is_transient(error):
        raise error
    return error


async def poll_for_events(client: AsyncPipelineClient, name: str, watch: PipelineWatch) -> Poll | None:
    """Poll a pipeline once for events.

    :param client: the client
    :param name: the pipeline's name
    :param watch: the watch, which names what to request beside the descriptor
    :returns: the poll, or None if there is no such pipeline
    :raises PipelinesError: if the service cannot be asked
    """
    path = path_of("pipelines", name)
    try:
        descriptor = await client.request("GET", path, params=_STATUS, outage_budget_s=_ONE_TRY)
        events = None
        if watch.needs_events(descriptor):
            events = await client.request("GET", path + "/events", params={"selector": "all"}, outage_budget_s=_ONE_TRY)
    except PipelineAPIError as error:
        if error.error_code != ErrorCode.UNKNOWN_PIPELINE_NAME:
            raise
        return None
    stats = None
    if watch.needs_stats and _asks_runtime(descriptor):
        try:
            stats = await client.request("GET", path + "/stats", outage_budget_s=_ONE_TRY)
        except PipelineAPIError as error:
            # A pipeline that starts or stops has no statistics.
            _refusal_or_raise(error)
    return Poll(descriptor, time.time(), stats, events)
