"""A pass that derives the accumulators over all rows of a group, for aggregate calls that deltas alone do not determine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_pipelines.sql.plan.blocks.calls_over_rows import calls_over_rows
from airflow_pipelines.sql.plan.ir.aggregate import Aggregate
from airflow_pipelines.sql.plan.ir.markers import Marker
from airflow_pipelines.sql.plan.ir.stage import Stage


def derive_calls_over_rows(stage: Stage, _markers: Mapping[str, Marker]) -> Stage:
    """Add the calls over all rows of a group to an aggregate that is not linear.

    :param stage: a stage that no pass changes any more
    """
    node = stage.node
    if not isinstance(node, Aggregate) or node.is_linear:
        return stage
    return replace(stage, node=replace(node, over_rows=calls_over_rows(node)))
