"""One look at a pipeline for a condition, from a worker or from the triggerer."""

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
"""No budget for outages: whoever looks again and again bears with them himself."""


def observe(client: PipelineClient, name: str, condition: Condition) -> Observation:
    """Poll a pipeline once.

    :param client: the client
    :param name: the pipeline's name
    :param condition: says what to request beside the descriptor
    :returns: what the poll saw
    :raises PipelinesError: the service cannot be asked; a refusal that tells something about the pipeline is in the observation
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
    :param condition: says what to request beside the descriptor
    :returns: what the poll saw
    :raises PipelinesError: as of :func:`observe`
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
    """What to ask a pipeline's host: what the condition needs or, while changed views are evaluated, how far that is."""
    if not _asks_runtime(descriptor):
        return None
    bootstraps = descriptor is not None and descriptor.get("deployment_status") in _BOOTSTRAP
    return condition.request() or (_STATISTICS if bootstraps else None)


def _asks_runtime(descriptor: Mapping[str, Any] | None) -> bool:
    """Whether there is a host to ask, going by a descriptor."""
    return descriptor is not None and descriptor.get("deployment_resources_status") == "Provisioned"


def _refusal_or_raise(error: PipelineAPIError) -> PipelineAPIError:
    """The error itself when it tells something about the pipeline.

    :raises PipelineAPIError: the error, when it is a passing trouble of the service
    """
    if is_transient(error):
        raise error
    return error


async def poll_for_events(client: AsyncPipelineClient, name: str, watch: PipelineWatch) -> Poll | None:
    """Poll a pipeline once for what happened to it.

    :param client: the client
    :param name: the pipeline's name
    :param watch: says what to ask for beside the descriptor
    :returns: what the poll saw; None when there is no such pipeline
    :raises PipelinesError: the service cannot be asked
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
            # One that starts or ends has none.
            _refusal_or_raise(error)
    return Poll(descriptor, time.time(), stats, events)
