"""The notifier that saves the support bundle of a pipeline when a task on it fails."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier

from airflow_pipelines.hooks.pipeline import DEFAULT_CONN_ID, PipelineHook
from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.files import without_password, write_file

if TYPE_CHECKING:
    from airflow.sdk import Context


class SupportBundleNotifier(BaseNotifier):
    """The notifier that writes the support bundle of a pipeline to a file, as CollectSupportBundleOperator does.

    It is for the ``on_failure_callback`` of a task, of ``default_args``, or of a DAG.

    If the file cannot be written, the log of the callback has the error; the task's own failure stays as it is.

    :param path: the file (a ZIP), a template: a path on this worker, or a URL that fsspec supports. Include ``{{ run_id }}``,
        ``{{ ti.task_id }}`` and ``{{ ti.try_number }}``; otherwise a later bundle overwrites it
    :param pipeline_name: the pipeline; default that of the failed task
    :param pipeline_conn_id: the Airflow connection; default that of the failed task, else the default one
    :param file_conn_id: the connection with the credentials for a URL, as for IngestFileOperator
    """

    template_fields = ("path", "pipeline_name", "pipeline_conn_id", "file_conn_id")

    def __init__(
        self,
        *,
        path: str,
        pipeline_name: str | None = None,
        pipeline_conn_id: str | None = None,
        file_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.path = path
        self.pipeline_name = pipeline_name
        self.pipeline_conn_id = pipeline_conn_id
        self.file_conn_id = file_conn_id

    def __call__(self, *args: Any) -> None:
        """Notify with a copy of this notifier.

        Several tasks may share one, so the values rendered for one must not reach the others.
        """
        super(SupportBundleNotifier, copy(self)).__call__(*args)

    def notify(self, context: Context) -> None:
        """Collect and write the bundle.

        :param context: the context of the failed task
        """
        task = context.get("task")
        name = arguments.text("pipeline_name", self.pipeline_name or getattr(task, "pipeline_name", None))
        conn_id = self.pipeline_conn_id or getattr(task, "pipeline_conn_id", None) or DEFAULT_CONN_ID
        content = PipelineHook(conn_id).pipeline(name).support_bundle()
        path = arguments.text("path", self.path)
        write_file("path", path, content, self.file_conn_id)
        self.log.info("The support bundle of pipeline %s is in %s (%s bytes)", name, without_password(path), len(content))
