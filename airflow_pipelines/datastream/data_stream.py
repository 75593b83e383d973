"""Streams, as programs see them: each method adds operators to the graph of the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from airflow_pipelines.datastream.collecting import CloseableIterator, PrintSink
from airflow_pipelines.streams.elements import OutputTag
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.functions import (
    CallableFunction,
    FilterFunction,
    FlatMapFunction,
    Function,
    MapFunction,
)
from airflow_pipelines.streams.graph.nodes import (
    DEFAULT_EXCHANGE,
    Edge,
    Exchange,
    ExchangeKind,
    Graph,
    Node,
    checked_max_parallelism,
    checked_parallelism,
)
from airflow_pipelines.streams.operators.base import OperatorSpec
from airflow_pipelines.streams.operators.sink import Write
from airflow_pipelines.streams.operators.stateless import Filter, FlatMap, Map
from airflow_pipelines.streams.sinks import Sink


class Environment(Protocol):
    """What streams need of the environment that they belong to."""

    @property
    def graph(self) -> Graph:
        """The program so far."""
        ...

    def add_sink_node(self, node: Node) -> None:
        """A node that the next execution runs.

        :param node: a sink
        """
        ...

    def collect(self, stream: DataStream, name: str | None) -> CloseableIterator:
        """Run the program and bring a stream here.

        :param stream: the stream
        :param name: of the run
        :returns: its elements
        """
        ...


@dataclass(frozen=True)
class Port:
    """An output of a node.

    :param node: the node
    :param tag: name of the side output, None for the output itself
    """

    node: Node
    tag: str | None = None


class DataStreamSink:
    """The end of a stream.

    :param node: the sink
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    def name(self, name: str) -> DataStreamSink:
        """Name the sink, for people.

        :param name: the name
        :returns: this sink
        """
        self._node.name = name
        return self

    def uid(self, uid: str) -> DataStreamSink:
        """Name the state of the sink across changes of the program.

        :param uid: a name of its own
        :returns: this sink
        """
        self._node.uid = uid
        return self

    def set_parallelism(self, parallelism: int) -> DataStreamSink:
        """Set the number of tasks.

        :param parallelism: at least 1
        :returns: this sink
        """
        self._node.parallelism = checked_parallelism(parallelism)
        return self


class DataStream:
    """Elements that follow each other.

    :param environment: the program
    :param ports: where the elements come from: several for a union
    :param exchange: how they find their task
    """

    def __init__(self, environment: Environment, ports: tuple[Port, ...], exchange: Exchange = DEFAULT_EXCHANGE) -> None:
        self._environment = environment
        self._ports = ports
        self._exchange = exchange

    # what it is

    def get_name(self) -> str:
        """The name of the operator that gives the elements.

        :returns: the name
        """
        return self._node.name

    def name(self, name: str) -> DataStream:
        """Name the operator that gives the elements, for people.

        :param name: the name
        :returns: this stream
        """
        self._own_node("name").name = name
        return self

    def uid(self, uid: str) -> DataStream:
        """Name the state of the operator across changes of the program.

        :param uid: a name of its own
        :returns: this stream
        """
        self._own_node("uid").uid = uid
        return self

    def set_parallelism(self, parallelism: int) -> DataStream:
        """Set the number of tasks of the operator.

        :param parallelism: at least 1
        :returns: this stream
        """
        node = self._own_node("set_parallelism")
        if node.non_parallel and parallelism != 1:
            raise StreamProgramError(f"The operator {node.name!r} cannot be parallel: its parallelism stays 1.")
        node.parallelism = checked_parallelism(parallelism)
        return self

    def set_max_parallelism(self, max_parallelism: int) -> DataStream:
        """Set the number of key groups of the operator, which can never change.

        :param max_parallelism: from 1 to 32768
        :returns: this stream
        """
        self._own_node("set_max_parallelism").max_parallelism = checked_max_parallelism(max_parallelism)
        return self

    @property
    def _node(self) -> Node:
        return self._ports[0].node

    def _own_node(self, method: str) -> Node:
        if len(self._ports) > 1 or self._ports[0].tag is not None or self._exchange is not DEFAULT_EXCHANGE:
            raise StreamProgramError(f"{method}() belongs to an operator: call it on what map(), process() and the like return.")
        return self._node

    # operators

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: Any = None) -> DataStream:
        """Transform each element.

        :param func: gives one result for an element
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        return self._then("Map", Map(as_function(func, MapFunction, "map")), output_type)

    def flat_map(self, func: Callable[[Any], Any] | FlatMapFunction, output_type: Any = None) -> DataStream:
        """Transform each element into any number of results.

        :param func: yields results, or returns a list of them
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        return self._then("Flat Map", FlatMap(as_function(func, FlatMapFunction, "flat_map")), output_type)

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataStream:
        """Keep some elements.

        :param func: says whether to keep an element
        :returns: those that are kept
        """
        return self._then("Filter", Filter(as_function(func, FilterFunction, "filter")), self._output_type())

    def union(self, *streams: DataStream) -> DataStream:
        """All elements of several streams. Those of one stream keep their order.

        :param streams: the others
        :returns: the union
        """
        ports = list(self._ports)
        for stream in streams:
            if stream._environment is not self._environment:
                raise StreamProgramError("union() of streams of two environments: a program has one.")
            if stream._exchange is not self._exchange:
                raise StreamProgramError("union() after a partitioning method: call union() first, then rebalance() and the like.")
            ports += stream._ports
        return DataStream(self._environment, tuple(ports), self._exchange)

    def get_side_output(self, output_tag: OutputTag[Any]) -> DataStream:
        """What the operator gives to a side output.

        :param output_tag: names it
        :returns: its elements
        """
        return DataStream(self._environment, (Port(self._own_node("get_side_output"), output_tag.tag_id),))

    # partitioning

    def rebalance(self) -> DataStream:
        """Give elements to the tasks of the next operator in turns.

        :returns: the stream
        """
        return self._exchanged(Exchange(ExchangeKind.REBALANCE))

    # ends

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the elements.

        :param sink: where to
        :returns: the end of the stream
        """
        return self._end("Sink: Writer", Write(sink))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write the elements as text to the standard output.

        :param sink_identifier: stands before each
        :returns: the end of the stream
        """
        declared = self._output_type()
        return self._end(
            "Sink: Print to Std. Out", Write(PrintSink(sink_identifier, str if declared is None else declared.to_text))
        )

    def execute_and_collect(self, job_execution_name: str | None = None, limit: int | None = None) -> CloseableIterator | list[Any]:
        """Run the program and bring the elements here.

        :param job_execution_name: of the run
        :param limit: how many elements at most
        :returns: an iterator that stops the program when it is closed; with a limit, a list
        """
        iterator = self._environment.collect(self, job_execution_name)
        if limit is None:
            return iterator
        with iterator:
            return [element for _, element in zip(range(limit), iterator, strict=False)]

    # how it is built

    def _edges(self, port: int = 0) -> list[Edge]:
        return [Edge(each.node.id, self._exchange, each.tag, port) for each in self._ports]

    def _output_type(self) -> Any:
        return self._node.output_type if self._ports[0].tag is None else None

    def _exchanged(self, exchange: Exchange) -> DataStream:
        return DataStream(self._environment, self._ports, exchange)

    def _then(self, name: str, operator: OperatorSpec, output_type: Any = None, **settings: Any) -> DataStream:
        node = self._environment.graph.add(
            name,
            operator,
            self._edges(),
            output_type=output_type,
            convert=None if output_type is None else output_type.converter(),
            **settings,
        )
        return DataStream(self._environment, (Port(node),))

    def _end(self, name: str, operator: OperatorSpec) -> DataStreamSink:
        node = self._environment.graph.add(name, operator, self._edges())
        self._environment.add_sink_node(node)
        return DataStreamSink(node)


def as_function(func: Any, kind: type[Function], method: str) -> Function:
    """A function object.

    :param func: what the program gave
    :param kind: what is expected
    :param method: the method that will be called
    :returns: the object itself, or one that calls it
    :raises StreamProgramError: when it is neither
    """
    if isinstance(func, kind):
        return func
    if isinstance(func, type) and issubclass(func, Function):
        raise StreamProgramError(f"{method}() was given the class {func.__name__}: give it an object, as in {func.__name__}().")
    if callable(func):
        return CallableFunction(func)
    raise StreamProgramError(f"{method}() needs a callable or a {kind.__name__}, and was given {func!r}.")
