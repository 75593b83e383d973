"""The page in Airflow: a plugin with an application beside Airflow's own, and two places in its user interface.

Airflow loads plugins in all of its processes, and only one of them serves pages, so nothing of the application is imported here.
"""

from __future__ import annotations

from airflow.sdk.plugins_manager import AirflowPlugin

from airflow_pipelines.links.page_links import FRAME_ROUTE, PLUGIN_PATH
from airflow_pipelines.plugin.late_app import LateApp
from airflow_pipelines.plugin.paths import airflow_path

_TASK_INSTANCE = "dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}&map_index={MAP_INDEX}"


class AirflowPipelinesPlugin(AirflowPlugin):
    """The plugin that adds pipelines to Airflow's navigation, and a tab with its pipeline to each task instance."""

    name = "airflow_pipelines"
    fastapi_apps = [{"app": LateApp(), "url_prefix": PLUGIN_PATH, "name": "Airflow Pipelines"}]
    external_views = [
        {
            "name": "Pipelines",
            "href": f"{airflow_path()}{PLUGIN_PATH}/",
            "icon": f"{airflow_path()}{PLUGIN_PATH}/icon.svg",
            "destination": "nav",
            "url_route": FRAME_ROUTE,
        },
        {
            "name": "Pipeline",
            "href": f"{airflow_path()}{PLUGIN_PATH}/?{_TASK_INSTANCE}",
            "icon": f"{airflow_path()}{PLUGIN_PATH}/icon.svg",
            "destination": "task_instance",
            "url_route": "pipeline",
        },
    ]
