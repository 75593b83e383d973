from __future__ import annotations

import pytest

# Its first import tries sockets, which tests of the fast part may not.
from airflow.providers.common.compat.openlineage import facet  # noqa: F401
from airflow.sdk import DAG, Asset
from airflow.serialization.serialized_objects import DagSerialization

from airflow_pipelines import assets
from airflow_pipelines.assets import pipeline_asset, watched_pipeline
from airflow_pipelines.assets.pipeline import convert_asset_to_openlineage, create_asset
from airflow_pipelines.triggers.events import PipelineEventTrigger


def test_airflow_checks_and_normalises_the_uris() -> None:
    assert Asset("airflow-pipelines://team/orders/").uri == "airflow-pipelines://team/orders"
    assert pipeline_asset("orders", "revenue", pipeline_conn_id="team").uri == "airflow-pipelines://team/orders/revenue"
    with pytest.raises(ValueError, match="is no URI of a pipeline"):
        Asset("airflow-pipelines://team/a/b/c")


def test_a_watched_pipeline_is_an_asset_of_its_own_with_a_trigger_of_its_own() -> None:
    saved = watched_pipeline("orders", events=["checkpoint"])
    both = watched_pipeline("orders", events=["idle", "checkpoint"])
    assert saved.uri == "airflow-pipelines://airflow_pipelines_default/orders?event=checkpoint"
    assert both.uri == "airflow-pipelines://airflow_pipelines_default/orders?event=checkpoint&event=idle"
    triggers = [asset.watchers[0].trigger for asset in (saved, both)]
    assert all(isinstance(trigger, PipelineEventTrigger) for trigger in triggers)
    assert len({trigger.name for trigger in triggers}) == 2
    # The order in which kinds are named makes no other asset.
    assert watched_pipeline("orders", events=["checkpoint", "idle"]).uri == both.uri


def test_a_dag_can_be_scheduled_on_one() -> None:
    with DAG("follows", schedule=[watched_pipeline("orders", events=["checkpoint"])]) as dag:
        pass
    encoded = str(DagSerialization.to_dict(dag))
    assert "airflow_pipelines.triggers.events.PipelineEventTrigger" in encoded
    DagSerialization.from_dict(DagSerialization.to_dict(dag))


def test_an_unknown_kind_is_an_error_of_the_dags_file() -> None:
    with pytest.raises(ValueError, match="known: checkpoint, sync, idle, failure, program_change"):
        watched_pipeline("orders", events=["checkpoints"])


def test_lineage_names_it_as_the_uri_does() -> None:
    dataset = convert_asset_to_openlineage(create_asset(pipeline_name="orders", relation="revenue", pipeline_conn_id="team"), None)
    assert (dataset.namespace, dataset.name) == ("airflow-pipelines://team", "orders.revenue")
    whole = convert_asset_to_openlineage(watched_pipeline("orders", events=["idle"]), None)
    assert (whole.namespace, whole.name) == ("airflow-pipelines://airflow_pipelines_default", "orders")


def test_all_can_be_imported_from_the_folder() -> None:
    assert {callable(getattr(assets, name)) for name in assets.__all__} == {True}
    with pytest.raises(AttributeError, match="no attribute 'asset'"):
        _ = assets.asset
