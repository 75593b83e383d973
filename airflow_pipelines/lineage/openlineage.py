"""Lineage for OpenLineage: the answers of operators to Airflow's OpenLineage provider, if it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from airflow_pipelines.sdk.errors import PipelinesError

if TYPE_CHECKING:
    from airflow.providers.common.compat.openlineage.facet import OutputDataset
    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_pipelines.hooks.pipeline import PipelineHook
    from airflow_pipelines.lineage.pipeline import Dataset, PipelineLineage


class _Task(Protocol):
    pipeline_name: str
    pipeline_conn_id: str

    @property
    def hook(self) -> PipelineHook: ...

    @property
    def log(self) -> Any: ...


class TellsLineage:
    """A mixin for operators that start, deploy or modify a pipeline and thereby define its lineage.

    The provider calls :meth:`get_openlineage_facets_on_complete` on the worker when the task has succeeded.
    """

    def get_openlineage_facets_on_complete(self: _Task, task_instance: Any) -> OperatorLineage[Any, Any] | None:  # noqa: ARG002
        """Return the datasets that the pipeline reads and writes, with columns, or None if the service cannot tell now.

        :param task_instance: unused, but passed by the provider
        """
        # Imported here: it loads the SQL parser, which would slow down the parsing of DAGs.
        from airflow_pipelines.lineage.pipeline import lineage_of

        try:
            descriptor = self.hook.descriptor(self.pipeline_name, "all")
        except PipelinesError as error:
            self.log.warning("No lineage of pipeline %s: %s", self.pipeline_name, error)
            return None
        return None if descriptor is None else operator_lineage(lineage_of(descriptor, self.pipeline_conn_id))


def operator_lineage(lineage: PipelineLineage) -> OperatorLineage[Any, Any]:
    """Convert lineage to the form of OpenLineage's provider.

    :param lineage: the lineage of a pipeline
    """
    # Imported here: the provider is optional, and only it calls this.
    from airflow.providers.common.compat.openlineage.facet import Dataset as InputDataset
    from airflow.providers.openlineage.extractors import OperatorLineage

    return OperatorLineage(
        inputs=[
            InputDataset(namespace=each.name.namespace, name=each.name.name, facets={"schema": _schema(each)})
            for each in lineage.inputs
        ],
        outputs=[_output(each) for each in lineage.outputs],
    )


def _output(dataset: Dataset) -> OutputDataset:
    from airflow.providers.common.compat.openlineage.facet import OutputDataset

    facets = {"schema": _schema(dataset)}
    if dataset.made_of:
        facets["columnLineage"] = _column_lineage(dataset)
    return OutputDataset(namespace=dataset.name.namespace, name=dataset.name.name, facets=facets)


def _schema(dataset: Dataset) -> Any:
    from airflow.providers.common.compat.openlineage.facet import SchemaDatasetFacet, SchemaDatasetFacetFields

    return SchemaDatasetFacet(fields=[SchemaDatasetFacetFields(name=name, type=kind) for name, kind in dataset.columns])


def _column_lineage(dataset: Dataset) -> Any:
    from airflow.providers.common.compat.openlineage.facet import ColumnLineageDatasetFacet, Fields, InputField

    return ColumnLineageDatasetFacet(
        fields={
            column: Fields([InputField(source.dataset.namespace, source.dataset.name, source.column) for source in sources])
            for column, sources in dataset.made_of.items()
        }
    )
