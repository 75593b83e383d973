"""Assets of pipelines, for the schedules of DAGs and the outlets of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from airflow.sdk import Asset, AssetWatcher

from airflow_pipelines.assets.uris import SCHEME, PipelineIdentity
from airflow_pipelines.hooks.pipeline import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from airflow.providers.common.compat.openlineage.facet import Dataset


def pipeline_asset(
    pipeline_name: str,
    relation: str | None = None,
    *,
    pipeline_conn_id: str = DEFAULT_CONN_ID,
    extra: Mapping[str, Any] | None = None,
) -> Asset:
    """Return the asset of a pipeline, or of one of its tables and views.

    :param pipeline_name: the pipeline
    :param relation: the table or view; None for the pipeline as a whole
    :param pipeline_conn_id: the Airflow connection
    :param extra: the extra of the asset
    :raises ValueError: if a part is empty or a template: an asset is the same for all runs

    >>> pipeline_asset("orders", "revenue").uri
    'airflow-pipelines://airflow_pipelines_default/orders/revenue'
    """
    return Asset(uri=PipelineIdentity(pipeline_conn_id, pipeline_name, relation).uri, extra=dict(extra or {}))


def watched_pipeline(
    pipeline_name: str,
    *,
    events: Sequence[str],
    pipeline_conn_id: str = DEFAULT_CONN_ID,
    poll_interval_s: float = 10.0,
    idle_interval_s: float = 30.0,
) -> Asset:
    """Return the asset of a pipeline's events, with a watcher: DAGs that are scheduled on it run when an event happens.

    Its URI is the pipeline's with ``?event=KIND`` for each kind. The watcher runs in the triggerer while a DAG that is not paused
    is scheduled on the asset. An event's ``extra["payload"]`` is ``{"event", "pipeline", ...}`` with the figures of its kind.

    :param pipeline_name: the pipeline; it need not exist yet
    :param events: the kinds: ``checkpoint``, ``sync``, ``idle``, ``failure``, ``program_change``
    :param pipeline_conn_id: the Airflow connection
    :param poll_interval_s: seconds between polls
    :param idle_interval_s: seconds without new input after which the pipeline is idle
    :raises ValueError: if a part is empty or a template, or there is no such kind
    """
    # Imported here: DAGs that only name pipelines as outlets need no trigger.
    from airflow_pipelines.triggers.events import PipelineEventTrigger

    kinds = [("event", str(kind)) for kind in sorted(events)]
    uri = f"{PipelineIdentity(pipeline_conn_id, pipeline_name).uri}?{urlencode(kinds)}"
    trigger = PipelineEventTrigger(
        pipeline_name=pipeline_name,
        events=list(events),
        pipeline_conn_id=pipeline_conn_id,
        poll_interval_s=poll_interval_s,
        idle_interval_s=idle_interval_s,
        name=uri,
    )
    return Asset(uri=uri, watchers=[AssetWatcher(name=f"events of pipeline {pipeline_name}", trigger=trigger)])


def create_asset(
    *,
    pipeline_name: str,
    relation: str | None = None,
    pipeline_conn_id: str = DEFAULT_CONN_ID,
    extra: Mapping[str, Any] | None = None,
) -> Asset:
    """Return the asset for the lineage of hooks, which finds this factory by the scheme; see :func:`pipeline_asset`."""
    return pipeline_asset(pipeline_name, relation, pipeline_conn_id=pipeline_conn_id, extra=extra)


def convert_asset_to_openlineage(asset: Asset, lineage_context: Any) -> Dataset:  # noqa: ARG001
    """Return the OpenLineage dataset of an asset.

    :param asset: the asset
    :param lineage_context: unused, but passed by name: the URI has everything
    """
    from airflow.providers.common.compat.openlineage.facet import Dataset

    identity = PipelineIdentity.of(asset.uri)
    name = identity.pipeline_name if identity.relation is None else f"{identity.pipeline_name}.{identity.relation}"
    return Dataset(namespace=f"{SCHEME}://{urlsplit(asset.uri).netloc}", name=name)
