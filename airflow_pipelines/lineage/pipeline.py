"""The lineage of a pipeline, column by column, from its compiled program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.assets.uris import SCHEME
from airflow_pipelines.lineage.datasets import DatasetName, datasets_of
from airflow_pipelines.program.messages import ProgramErrors
from airflow_pipelines.program.names import SYSTEM_VIEW
from airflow_pipelines.sql.program.column_lineage import ColumnOf, column_lineage, without


@dataclass(frozen=True)
class SourceColumn:
    """A column of a dataset."""

    dataset: DatasetName
    column: str


@dataclass(frozen=True)
class Dataset:
    """A dataset with the known facts about its columns.

    :param columns: names and types
    :param made_of: the source columns of each column; a column whose sources are not known is left out
    """

    name: DatasetName
    columns: tuple[tuple[str, str], ...] = ()
    made_of: Mapping[str, tuple[SourceColumn, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class PipelineLineage:
    """The inputs of a pipeline, and its outputs: its tables and views, and the datasets that its output connectors write."""

    inputs: tuple[Dataset, ...]
    outputs: tuple[Dataset, ...]


def lineage_of(descriptor: Mapping[str, Any], pipeline_conn_id: str) -> PipelineLineage:
    """Return the lineage of a pipeline.

    :param descriptor: its descriptor with all fields; without a compiled program there is no lineage
    :param pipeline_conn_id: the Airflow connection, which names its relations as the URIs of assets do
    """
    info = descriptor.get("program_info")
    if not info:
        return PipelineLineage((), ())
    return _Program(descriptor, info, pipeline_conn_id).lineage()


class _Program:
    def __init__(self, descriptor: Mapping[str, Any], info: Mapping[str, Any], pipeline_conn_id: str) -> None:
        self._name = str(descriptor["name"])
        self._text = str(descriptor.get("program_code") or "")
        self._conn_id = pipeline_conn_id
        self._inputs: Mapping[str, Any] = info["input_connectors"]
        self._outputs: Mapping[str, Any] = info["output_connectors"]
        relations = [*info["schema"]["inputs"], *info["schema"]["outputs"]]
        self._columns = {str(one["name"]): _columns(one["fields"]) for one in relations}
        self._lineage = self._column_lineage()

    def lineage(self) -> PipelineLineage:
        sources = {dataset: self._columns.get(relation, ()) for relation, dataset in self._list_connected(self._inputs)}
        inputs = tuple(Dataset(dataset, columns) for dataset, columns in sorted(sources.items()))
        # Every program has the system view of late rows; it is no part of the lineage.
        relations = [self._relation(relation, columns) for relation, columns in self._columns.items() if relation != SYSTEM_VIEW]
        sinks = [self._sink(relation, dataset) for relation, dataset in self._list_connected(self._outputs)]
        return PipelineLineage(inputs, (*relations, *sinks))

    def _relation(self, relation: str, columns: Sequence[tuple[str, str]]) -> Dataset:
        """Return the dataset of a relation. A table's sources are those of its connectors, a view's are those of its query."""
        made_of: dict[str, tuple[SourceColumn, ...]] = {
            column: tuple(SourceColumn(self._dataset(source.relation), source.column) for source in sorted(sources))
            for column, sources in self._lineage.get(relation, {}).items()
        }
        fed_by = [dataset for to, dataset in self._list_connected(self._inputs) if to == relation]
        if fed_by:
            made_of = {column: tuple(SourceColumn(dataset, column) for dataset in fed_by) for column, _ in columns}
        return Dataset(self._dataset(relation), tuple(columns), made_of)

    def _sink(self, relation: str, dataset: DatasetName) -> Dataset:
        columns = self._columns.get(relation, ())
        view = self._dataset(relation)
        return Dataset(dataset, columns, {column: (SourceColumn(view, column),) for column, _ in columns})

    def _list_connected(self, connectors: Mapping[str, Any]) -> list[tuple[str, DatasetName]]:
        """Return the relations of connectors with the datasets."""
        return [
            (str(connector["stream"]), dataset)
            for _, connector in sorted(connectors.items())
            for dataset in datasets_of(str(connector["transport"]["name"]), connector["transport"].get("config") or {})
        ]

    def _dataset(self, relation: str) -> DatasetName:
        return DatasetName(f"{SCHEME}://{self._conn_id}", f"{self._name}.{relation}")

    def _column_lineage(self) -> Mapping[str, Mapping[str, frozenset[ColumnOf]]]:
        known = {relation: [name for name, _ in columns] for relation, columns in self._columns.items()}
        try:
            lineages = column_lineage(self._text, known)
        except ProgramErrors:
            # Another release may have compiled a program that this one cannot parse.
            return {}
        return without(lineages, lineages.keys() - known.keys())


def _columns(fields: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    return tuple((str(one["name"]), str((one.get("columntype") or {}).get("type", ""))) for one in fields)
