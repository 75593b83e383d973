"""The operator that saves the support bundle of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_pipelines.operators import arguments
from airflow_pipelines.operators.base import PipelineOperator
from airflow_pipelines.operators.files import without_password, write_file

if TYPE_CHECKING:
    from airflow.sdk import Context


class CollectSupportBundleOperator(PipelineOperator):
    """The operator that writes a pipeline's support bundle to a file.

    It has the log, events, statistics, metrics, configuration, dataflow graph, and the cost of the newest steps, as far as the
    pipeline provides them. The pipeline need not run. SupportBundleNotifier does the same when a task fails.

    XCom: ``{"pipeline", "path", "bytes"}``.

    :param path: the file (a ZIP): a path on this worker, or a URL that fsspec supports
    :param file_conn_id: the connection with the credentials for a URL, as for IngestFileOperator
    """

    template_fields: Sequence[str] = (*PipelineOperator.template_fields, "path", "file_conn_id")

    def __init__(self, *, path: str, file_conn_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.given = arguments.collect_given(file_conn_id=file_conn_id)
        self.path = path
        self.file_conn_id = file_conn_id

    def check_arguments(self) -> None:
        """See the base class."""
        super().check_arguments()
        self.path = arguments.text("path", self.path)
        for name in self.given:
            arguments.text(name, getattr(self, name))

    def act(self, context: Context) -> dict[str, Any]:
        """Collect and write the bundle."""
        content = self.hook.pipeline(self.pipeline_name).support_bundle()
        write_file("path", self.path, content, self.file_conn_id)
        shown = without_password(self.path)
        self.log.info("The support bundle of pipeline %s is in %s (%s bytes)", self.pipeline_name, shown, len(content))
        return {"pipeline": self.pipeline_name, "path": shown, "bytes": len(content)}
