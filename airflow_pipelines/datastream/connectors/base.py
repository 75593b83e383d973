"""The base classes of sources and sinks for programs: those of the core, with the types of their elements."""

from __future__ import annotations

from typing import Self

from airflow_pipelines.datastream.common.type_information import TypeInformation
from airflow_pipelines.streams import sinks, sources


class Source(sources.Source):
    """A source of elements. Derive custom sources from this class."""

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the elements, for a program that declares none.

        :returns: the type, or None
        """
        return None


class Sink(sinks.Sink):
    """A sink for elements. Derive custom sinks from this class.

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.connectors import Sink, SinkWriter
    >>> class Sales(Sink):
    ...     def open(self, subtask):
    ...         return SalesOfTask()
    >>> class SalesOfTask(SinkWriter):
    ...     def write(self, batch):
    ...         print("sold:", *batch.values)
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> end = env.from_collection(["apples", "pears"]).sink_to(Sales())
    >>> result = env.execute("sales")
    sold: apples pears
    """

    def for_type(self, type_info: TypeInformation | None) -> Self:
        """Return the sink for a stream of a type.

        :param type_info: the declared type of its elements, or None
        :returns: a sink that writes elements of this type; this sink if the type makes no difference
        """
        return self
