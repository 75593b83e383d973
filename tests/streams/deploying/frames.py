"""A front end in one file: rows of a compressed file of JSON, a function over each, and a relation of the rows.

It knows neither Spark nor the data stream API, and shows all that another interface to streams needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from airflow_pipelines.program.streams import StreamRun
from airflow_pipelines.rows.formats.json import JsonOptions, JsonParser
from airflow_pipelines.rows.schema import Column, RelationSchema
from airflow_pipelines.rows.types import ColumnType
from airflow_pipelines.streams.deploying import binding
from airflow_pipelines.streams.deploying.description import Execution
from airflow_pipelines.streams.functions import Function
from airflow_pipelines.streams.graph.chains import Defaults, plan_of
from airflow_pipelines.streams.graph.nodes import Edge, Graph, Node
from airflow_pipelines.streams.graph.plan import plan_json
from airflow_pipelines.streams.local import LocalRunner
from airflow_pipelines.streams.operators.base import TaskSettings
from airflow_pipelines.streams.operators.sink import Write
from airflow_pipelines.streams.operators.source import Read
from airflow_pipelines.streams.operators.stateless import Map
from airflow_pipelines.streams.python_environment.needs import PythonNeeds
from airflow_pipelines.streams.relations import INSERT, RelationSink
from airflow_pipelines.streams.sources import Polled, Source, SourceReader
from airflow_pipelines.systems.files.access import file_system_of
from airflow_pipelines.systems.files.compression import Decompressed, compression_of

Columns = dict[str, str]


def _schema(columns: Columns) -> RelationSchema:
    return RelationSchema("rows", tuple(Column(name, ColumnType(kind)) for name, kind in columns.items()))


@dataclass(frozen=True)
class RowsOfFile(Source):
    """The rows of a file, as dictionaries."""

    path: str
    columns: tuple[tuple[str, str], ...]
    is_bounded = True  # type: ignore[assignment]

    def splits(self, parallelism: int) -> list[Any]:
        return [self.path]

    def open(self, split: Any, position: Any | None) -> SourceReader:
        return _Reader(self, position or 0)


class _Reader(SourceReader):
    def __init__(self, source: RowsOfFile, start: int) -> None:
        system, path = file_system_of(source.path)
        with system.open(path, "rb") as file:
            parser = JsonParser(_schema(dict(source.columns)), JsonOptions(update_format="raw"))
            parsed = parser.parse(Decompressed(file, compression_of(path)).readall())
        if parsed.errors:
            raise ValueError(f"{path}: {parsed.errors[0].message}")
        rows = [] if parsed.changes is None else parsed.changes.rows.to_pylist()
        self._rows = [{name: row[name] for name, _ in source.columns} for row in rows]
        self._next = start

    def poll(self, limit: int) -> Polled:
        values = self._rows[self._next : self._next + limit]
        self._next += len(values)
        return Polled(values, finished=self._next == len(self._rows))

    def position(self) -> Any:
        return self._next


class _Call(Function):
    def __init__(self, call: Callable[[Any], Any]) -> None:
        self._call = call

    def map(self, value: Any) -> Any:
        return self._call(value)


@dataclass(frozen=True)
class _RowOf:
    names: tuple[str, ...]

    def __call__(self, element: dict[str, Any]) -> tuple[int, tuple[Any, ...]]:
        return INSERT, tuple(element[name] for name in self.names)


@dataclass
class Frame:
    """Rows to which functions are applied."""

    graph: Graph = field(default_factory=Graph)
    last: Node | None = None

    @classmethod
    def read(cls, path: str, columns: Columns) -> Frame:
        frame = cls()
        frame.last = frame.graph.add("rows", Read(RowsOfFile(path, tuple(columns.items())), None), [], non_parallel=True)
        return frame

    def apply(self, call: Callable[[Any], Any]) -> Frame:
        assert self.last is not None
        self.last = self.graph.add("apply", Map(_Call(call)), [Edge(self.last.id)])
        return self

    def save(self, relation: str, columns: Columns) -> None:
        """Make a relation of the rows in a pipeline; print them elsewhere."""
        assert self.last is not None
        sink = RelationSink(relation, tuple(columns.items()), _RowOf(tuple(columns)))
        node = self.graph.add("save", Write(sink), [Edge(self.last.id)])
        defaults = Defaults(1, None, True)
        plan = plan_of(self.graph, [node.id], defaults)
        if binding.is_binding():
            binding.note_execution()
            drawn = plan_json(self.graph, [node.id], defaults)
            binding.bind_execution(Execution("frames", plan, TaskSettings(), drawn, PythonNeeds(), StreamRun()))
        else:
            LocalRunner(plan, TaskSettings()).run()
