"""Metrics of the service and of all pipelines that it runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from airflow_pipelines.contract.exposition import Metric, MetricKind
from airflow_pipelines.contract.problems import Problem
from airflow_pipelines.contract.statuses import ResourcesStatus
from airflow_pipelines.service.control_plane import ControlPlane
from airflow_pipelines.service.hosts import HostUnreachable
from airflow_pipelines.service.records import PipelineRecord

AT_ONCE = 8
"""The maximum number of pipelines that are asked at the same time."""
PATIENCE_S = 3.0
"""The number of seconds to wait for a pipeline; without an answer it is left out, since metrics are collected again soon."""
logger = logging.getLogger(__name__)


def metrics_of_all(control_plane: ControlPlane) -> list[Metric]:
    """Return the number of pipelines in each status, a metric for each that shows if it runs, and the metrics of the deployed ones.

    :param control_plane: the control plane
    """
    records = control_plane.pipelines()
    statuses = [record.deployment_status for record in records]
    metrics = [
        Metric("pipelines_total", MetricKind.GAUGE, "Pipelines by deployment status.", statuses.count(status), {"status": status})
        for status in sorted(set(statuses))
    ]
    for record in records:
        labels = {"pipeline": str(record.id), "pipeline_name": record.name}
        running = record.deployment_status == "Running"
        metrics.append(Metric("pipeline_up", MetricKind.GAUGE, "Whether the pipeline runs.", float(running), labels))
    deployed = [record for record in records if record.deployment_resources_status is ResourcesStatus.PROVISIONED]
    if deployed:
        with ThreadPoolExecutor(min(AT_ONCE, len(deployed)), "metrics") as pool:
            for of_one in pool.map(lambda record: list(_read_pipeline_metrics(control_plane, record)), deployed):
                metrics += of_one
    return metrics


def _read_pipeline_metrics(control_plane: ControlPlane, record: PipelineRecord) -> Iterator[Metric]:
    """Yield the metrics that a pipeline's host reports; none while it is not ready to answer."""
    try:
        target = control_plane.target(record.name)
        response = control_plane.hosts.call(target.host, "GET", f"{target.path}/metrics?format=json", timeout_s=PATIENCE_S)
    except (Problem, HostUnreachable) as error:
        logger.info("There are no metrics of pipeline %s: %s", record.name, error)
        return
    if not response.is_success:
        return
    for metric in response.json():
        for measured in metric["values"]:
            yield Metric(metric["key"], MetricKind(metric["type"]), metric["description"], measured["value"], measured["labels"])
