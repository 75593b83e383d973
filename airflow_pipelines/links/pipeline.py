"""Links of tasks to pages of their pipeline. The worker makes them when a part of the task ends, from its rendered arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink, conf

from airflow_pipelines.links.page_links import airflow_page_link
from airflow_pipelines.sdk.errors import PipelinesError

if TYPE_CHECKING:
    from airflow.sdk.types import TaskInstanceKey


class PipelineLink(BaseOperatorLink):
    """The page of the task's pipeline: status, graph, figures, logs."""

    name = "Pipeline"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """The page's address.

        :param operator: the task, rendered
        :param ti_key: not needed, but given
        :returns: the address; empty when the task names no pipeline
        """
        return _page(operator)


class PipelineChangeLink(BaseOperatorLink):
    """The page of the change of the task's pipeline: both programs, and what is evaluated anew."""

    name = "Change"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """The page's address.

        :param operator: the task, rendered
        :param ti_key: not needed, but given
        :returns: the address; empty when the task names no pipeline
        """
        page = _page(operator)
        return f"{page}&view=change" if page else ""


class SparkApplicationLink(BaseOperatorLink):
    """Spark's own page of the application that the task's pipeline runs in, where hosts have one."""

    name = "Spark UI"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """The page's address.

        :param operator: the task, rendered
        :param ti_key: not needed, but given
        :returns: the address; empty when hosts have no such page, or the pipeline does not run
        """
        try:
            return str(operator.hook.spark_application(operator.pipeline_name)["web_url"] or "")
        except PipelinesError:
            # Whether there is a link is no reason to say anything about the task.
            return ""


def _page(operator: Any) -> str:
    name, connection = getattr(operator, "pipeline_name", None), getattr(operator, "pipeline_conn_id", None)
    if not isinstance(name, str) or not isinstance(connection, str) or not name:
        return ""
    return airflow_page_link(str(conf.get("api", "base_url", fallback="") or ""), name, connection)
