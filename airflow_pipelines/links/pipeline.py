"""Links of tasks to pages of their pipeline. The worker makes them when a part of the task ends, from its rendered arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink, conf

from airflow_pipelines.links.page_links import airflow_page_link
from airflow_pipelines.sdk.errors import PipelinesError

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey


class PipelineLink(BaseOperatorLink):
    """The link to the page of the task's pipeline: status, graph, figures, logs."""

    name = "Pipeline"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """Return the address of the page.

        :param operator: the task, rendered
        :param ti_key: unused, but passed by Airflow
        :returns: the address; empty if the task names no pipeline
        """
        return _page(operator)


class PipelineChangeLink(BaseOperatorLink):
    """The link to the page of the change of the task's pipeline: both programs, and the parts that are re-evaluated."""

    name = "Change"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """Return the address of the page.

        :param operator: the task, rendered
        :param ti_key: unused, but passed by Airflow
        :returns: the address; empty if the task names no pipeline
        """
        page = _page(operator)
        return f"{page}&view=change" if page else ""


class SparkApplicationLink(BaseOperatorLink):
    """The link to Spark's own page of the application in which the task's pipeline runs, if hosts have one."""

    name = "Spark UI"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """Return the address of the page.

        :param operator: the task, rendered
        :param ti_key: unused, but passed by Airflow
        :returns: the address; empty if hosts have no such page, or the pipeline does not run
        """
        try:
            return str(operator.hook.spark_application(operator.pipeline_name)["web_url"] or "")
        except PipelinesError:
            # A missing link must not affect the task.
            return ""


def _page(operator: Any) -> str:
    name, connection = getattr(operator, "pipeline_name", None), getattr(operator, "pipeline_conn_id", None)
    if not isinstance(name, str) or not isinstance(connection, str) or not name:
        return ""
    return airflow_page_link(str(conf.get("api", "base_url", fallback="") or ""), name, connection)
