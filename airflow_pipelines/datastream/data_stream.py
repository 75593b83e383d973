"""Streams in the API of programs: each method adds operators to the graph of the program."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from airflow_pipelines.datastream.collecting import CloseableIterator, PrintSink
from airflow_pipelines.datastream.common.row import Row
from airflow_pipelines.datastream.common.type_information import converter_of
from airflow_pipelines.datastream.connected_streams import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
from airflow_pipelines.datastream.connectors import base as connectors
from airflow_pipelines.datastream.data_stream_sink import DataStreamSink
from airflow_pipelines.datastream.fields import extreme, extreme_element, field_of, summing
from airflow_pipelines.datastream.function_sink import FunctionSink, SinkFunction
from airflow_pipelines.datastream.given_functions import as_function, checked_function, checked_tag, key_selector_of
from airflow_pipelines.datastream.joined_streams import CoGroupedStreams, IntervalJoinedStreams, JoinedStreams
from airflow_pipelines.datastream.relations import relation_sink
from airflow_pipelines.datastream.stream_settings import Port, StreamSettings
from airflow_pipelines.datastream.windowed_stream import AllWindowedStream, WindowedStream
from airflow_pipelines.streams.elements import OutputTag
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.functions import (
    CallableFunction,
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ReduceFunction,
)
from airflow_pipelines.streams.graph.nodes import (
    DEFAULT_EXCHANGE,
    Edge,
    Exchange,
    ExchangeKind,
    Graph,
    Node,
)
from airflow_pipelines.streams.operators.base import OperatorSpec
from airflow_pipelines.streams.operators.event_time import AssignEventTime
from airflow_pipelines.streams.operators.keyed_calls import KeyedCall
from airflow_pipelines.streams.operators.process import KeyedProcess, Process
from airflow_pipelines.streams.operators.reduce import Reduce
from airflow_pipelines.streams.operators.sink import Write
from airflow_pipelines.streams.operators.stateless import Filter, FlatMap, Map
from airflow_pipelines.streams.process_functions import KeyedProcessFunction, ProcessFunction
from airflow_pipelines.streams.sinks import Sink
from airflow_pipelines.streams.state.descriptors import MapStateDescriptor
from airflow_pipelines.streams.watermarks import TimestampsAndWatermarks
from airflow_pipelines.streams.windows.assigners import WindowAssigner
from airflow_pipelines.streams.windows.count_windows import CountSlidingWindowAssigner, CountTumblingWindowAssigner


class Environment(Protocol):
    """The interface of the environment that its streams need."""

    @property
    def graph(self) -> Graph:
        """The graph of the program so far."""
        ...

    def add_sink_node(self, node: Node) -> None:
        """Add a sink to the next execution.

        :param node: the node of the sink
        """
        ...

    def collect(self, stream: DataStream, name: str | None) -> CloseableIterator:
        """Run the program and bring the elements of a stream to this process.

        :param stream: the stream
        :param name: the name of the run
        :returns: its elements
        """
        ...


class DataStream(StreamSettings):
    """A stream of elements.

    :param environment: the environment of the program
    :param ports: the outputs that the elements come from; several for a union
    :param exchange: the distribution of the elements over tasks

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> words = env.from_collection(["to be", "or not"]).flat_map(lambda line: line.split())
    >>> list(words.filter(lambda word: word != "or").map(str.upper).execute_and_collect())
    ['TO', 'BE', 'NOT']
    """

    def __init__(self, environment: Environment, ports: tuple[Port, ...], exchange: Exchange = DEFAULT_EXCHANGE) -> None:
        super().__init__(ports, exchange)
        self._environment = environment

    def get_type(self) -> Any:
        """Return the declared type of the elements.

        :returns: the type, None if none was declared
        """
        return self._output_type()

    def get_execution_environment(self) -> Any:
        """Return the environment of the program.

        :returns: the environment
        """
        return self._environment

    @property
    def _is_keyed(self) -> bool:
        return False

    # operators

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: Any = None) -> DataStream:
        """Transform each element.

        :param func: the function that returns one result for an element
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        return self._then("Map", Map(as_function(func, MapFunction, "map")), output_type)

    def flat_map(self, func: Callable[[Any], Any] | FlatMapFunction, output_type: Any = None) -> DataStream:
        """Transform each element into any number of results.

        :param func: the function that yields results, or returns a list of them
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        return self._then("Flat Map", FlatMap(as_function(func, FlatMapFunction, "flat_map")), output_type)

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataStream:
        """Keep the elements that satisfy a predicate.

        :param func: the function that returns True for an element to keep
        :returns: the elements that are kept
        """
        return self._then("Filter", Filter(as_function(func, FilterFunction, "filter")), self._output_type())

    def process(self, func: ProcessFunction | KeyedProcessFunction, output_type: Any = None) -> DataStream:
        """Process each element with its timestamp and the watermark.

        :param func: the function object
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        if isinstance(func, KeyedProcessFunction):
            raise StreamProgramError(
                "process() on a stream without keys was given a KeyedProcessFunction: put key_by(...) before it."
            )
        return self._then("Process", Process(checked_function(func, ProcessFunction, "process")), output_type)

    def join(self, other: DataStream) -> JoinedStreams[DataStream]:
        """Join the elements of this stream with those of another by key and window.

        :param other: the other stream
        :returns: both, of which :meth:`~JoinedStreams.where` and ``equal_to`` set the keys
        """
        return JoinedStreams(self, _check_stream(other, "join"))

    def co_group(self, other: DataStream) -> CoGroupedStreams[DataStream]:
        """Group the elements of this stream and another by key and window.

        :param other: the other stream
        :returns: both, of which :meth:`~JoinedStreams.where` and ``equal_to`` set the keys
        """
        return CoGroupedStreams(self, _check_stream(other, "co_group"))

    def project(self, *field_indexes: int) -> DataStream:
        """Keep some fields of tuples.

        :param field_indexes: numbers of the fields, in the order of the results
        :returns: tuples of these fields
        """

        def projected(value: Any) -> Any:
            if not isinstance(value, tuple | list):
                raise StreamProgramError(f"project() keeps fields of tuples, and {value!r} is none.")
            return tuple([field_of(value, index) for index in field_indexes])

        return self._then("Projection", Map(CallableFunction(projected)))

    def assign_timestamps_and_watermarks(self, watermark_strategy: TimestampsAndWatermarks) -> DataStream:
        """Assign timestamps to the elements, and watermarks to the stream.

        :param watermark_strategy: the strategy
        :returns: the same elements
        """
        if not isinstance(watermark_strategy, TimestampsAndWatermarks):
            raise StreamProgramError(
                f"assign_timestamps_and_watermarks() needs a WatermarkStrategy, and was given {watermark_strategy!r}."
            )
        return self._then("Timestamps/Watermarks", AssignEventTime(watermark_strategy), self._output_type())

    def key_by(self, key_selector: Callable[[Any], Any] | KeySelector, key_type: Any = None) -> KeyedStream:
        """Partition the stream by key, so that elements with the same key meet.

        :param key_selector: the function that returns the key of an element
        :param key_type: declared type of the keys; optional
        :returns: the stream with keys
        """
        return KeyedStream(self, key_selector_of(key_selector), key_type)

    def connect(self, ds: DataStream | BroadcastStream[DataStream]) -> Any:
        """Connect another stream, so that one function processes both.

        :param ds: the other stream, or one that was broadcast with states
        :returns: :class:`ConnectedStreams` or :class:`BroadcastConnectedStream`
        """
        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds)
        return ConnectedStreams(self, _check_stream(ds, "connect"))

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream[DataStream]:
        """Assign all elements of the stream to windows. The operator has one task.

        :param window_assigner: the assigner that selects the windows of an element
        :returns: the windows
        """
        return AllWindowedStream(KeyedStream(self, _same_key), window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream[DataStream]:
        """Assign all elements of the stream to windows of a fixed number of elements.

        :param size: number of elements
        :param slide: number of elements from one window to the next, 0 for windows that do not overlap
        :returns: the windows
        """
        return self.window_all(_make_count_assigner(size, slide))

    def union(self, *streams: DataStream) -> DataStream:
        """Return the union of this stream and others. Elements of one stream keep their order.

        :param streams: the other streams
        :returns: the union
        """
        ports = list(self._ports)
        for stream in streams:
            if _check_stream(stream, "union")._environment is not self._environment:
                raise StreamProgramError("union() of streams of two environments: a program has one.")
            if stream._exchange is not self._exchange:
                raise StreamProgramError("union() after a partitioning method: call union() first, then rebalance() and the like.")
            ports += stream._ports
        return DataStream(self._environment, tuple(ports), self._exchange)

    def get_side_output(self, output_tag: OutputTag[Any]) -> DataStream:
        """Return the side output of the operator as a stream.

        :param output_tag: the tag of the side output
        :returns: its elements
        """
        checked_tag(output_tag, "get_side_output")
        node = self._own_node("get_side_output")
        if output_tag.type_info is not None:
            node.side_converts[output_tag.tag_id] = converter_of("type_info of OutputTag", output_tag.type_info)
        return DataStream(self._environment, (Port(node, output_tag.tag_id, output_tag.type_info),))

    # partitioning

    def rebalance(self) -> DataStream:
        """Distribute elements to the tasks of the next operator round-robin.

        :returns: the stream
        """
        return self._apply_exchange(Exchange(ExchangeKind.REBALANCE))

    def rescale(self) -> DataStream:
        """Distribute elements to a subset of the tasks of the next operator round-robin.

        :returns: the stream
        """
        return self._apply_exchange(Exchange(ExchangeKind.RESCALE))

    def shuffle(self) -> DataStream:
        """Distribute elements to arbitrary tasks of the next operator. A step that is computed again uses the same tasks.

        :returns: the stream
        """
        return self._apply_exchange(Exchange(ExchangeKind.SHUFFLE))

    def forward(self) -> DataStream:
        """Send elements to the task of the next operator with the same number.

        :returns: the stream
        """
        return self._apply_exchange(Exchange(ExchangeKind.FORWARD))

    def broadcast(self, *broadcast_state_descriptors: MapStateDescriptor) -> Any:
        """Send each element to all tasks of the next operator.

        :param broadcast_state_descriptors: descriptors of the states that these elements change
        :returns: the stream; with states, a :class:`BroadcastStream` that another stream can be connected to
        """
        stream = self._apply_exchange(Exchange(ExchangeKind.BROADCAST))
        return BroadcastStream(stream, broadcast_state_descriptors) if broadcast_state_descriptors else stream

    def partition_custom(
        self, partitioner: Callable[[Any, int], int] | Partitioner, key_selector: Callable[[Any], Any] | KeySelector
    ) -> DataStream:
        """Choose the task of the next operator for each element.

        :param partitioner: the function that returns the number of a task, given the key and the number of tasks
        :param key_selector: the function that returns the key of an element
        :returns: the stream
        """
        choose = as_function(partitioner, Partitioner, "partition_custom")
        exchange = Exchange(ExchangeKind.CUSTOM, key_selector_of(key_selector), choose.partition)  # type: ignore[attr-defined]
        return self._apply_exchange(exchange)

    # ends

    def sink_to(self, sink: Sink) -> DataStreamSink:
        """Write the elements to a sink.

        :param sink: the sink
        :returns: the end of the stream
        """
        if not isinstance(sink, Sink):
            raise StreamProgramError(
                f"sink_to() needs a sink of a connector, and was given {sink!r}. A SinkFunction goes to add_sink()."
            )
        return self._end("Sink: Writer", Write(_adapt_sink(sink, self._output_type())))

    def add_sink(self, sink_func: SinkFunction | Sink) -> DataStreamSink:
        """Write the elements to a sink function.

        :param sink_func: the function object, or a sink of a connector
        :returns: the end of the stream
        """
        if isinstance(sink_func, Sink):
            return self._end("Sink: Unnamed", Write(_adapt_sink(sink_func, self._output_type())))
        return self._end("Sink: Unnamed", Write(FunctionSink(checked_function(sink_func, SinkFunction, "add_sink"))))

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write the elements as text to the standard output.

        :param sink_identifier: the text before each element; None for none
        :returns: the end of the stream
        """
        declared = self._output_type()
        return self._end(
            "Sink: Print to Std. Out", Write(PrintSink(sink_identifier, str if declared is None else declared.to_text))
        )

    def to_relation(self, name: str, schema: Any, primary_key: Sequence[str] | str | None = None) -> DataStreamSink:
        """Make a relation of the elements, which SQL views and queries of the pipeline read. Without a pipeline, print them.

        An element is a ``Row``, a tuple, a dict or, for one column, the value itself. A ``Row`` of the kind ``DELETE`` or
        ``UPDATE_BEFORE`` removes the row with its key.

        :param name: the name of the relation, as in SQL
        :param schema: the columns: ``Types.ROW_NAMED(...)``, a dict of names and types, or a text such as ``id BIGINT, note
            VARCHAR``
        :param primary_key: the columns by which a later element replaces an earlier one; None if rows are only added
        :returns: the end of the stream
        """
        sink = relation_sink(name, schema, primary_key)
        # One task: several would reorder the rows of a key, and the last row of a key wins.
        return self._end(f"Sink: {sink.relation}", Write(sink), non_parallel=True)

    def execute_and_collect(self, job_execution_name: str | None = None, limit: int | None = None) -> CloseableIterator | list[Any]:
        """Run the program and bring the elements to this process.

        :param job_execution_name: the name of the run
        :param limit: the maximum number of elements; None for all
        :returns: an iterator that stops the program when it is closed; with a limit, a list
        """
        iterator = self._environment.collect(self, job_execution_name)
        if limit is None:
            return iterator
        with iterator:
            return [element for _, element in zip(range(limit), iterator, strict=False)]

    # construction of the graph

    def _edges(self, port: int = 0) -> list[Edge]:
        return [Edge(each.node.id, self._exchange, each.tag, port) for each in self._ports]

    def _output_type(self) -> Any:
        port = self._ports[0]
        return port.node.output_type if port.tag is None else port.side_type

    def _apply_exchange(self, exchange: Exchange) -> DataStream:
        return DataStream(self._environment, self._ports, exchange)

    def _then(self, name: str, spec: OperatorSpec, output_type: Any = None, **settings: Any) -> DataStream:
        return self._add_operator(name, spec, self._edges(), output_type, **settings)

    def _add_operator(self, name: str, spec: OperatorSpec, edges: list[Edge], output_type: Any, **settings: Any) -> DataStream:
        node = self._environment.graph.add(
            name,
            spec,
            edges,
            output_type=output_type,
            convert=None if output_type is None else converter_of("output_type", output_type),
            **settings,
        )
        return DataStream(self._environment, (Port(node),))

    def _end(self, name: str, spec: OperatorSpec, *, non_parallel: bool = False) -> DataStreamSink:
        node = self._environment.graph.add(name, spec, self._edges(), non_parallel=non_parallel)
        self._environment.add_sink_node(node)
        return DataStreamSink(node)


class KeyedStream(DataStream):
    """A stream whose elements have keys. State and timers belong to a key, and the elements of a key keep their order.

    :param origin: the stream without keys
    :param selector: the function that returns the key of an element
    :param key_type: declared type of the keys

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> orders = env.from_collection([("ann", 10), ("bob", 5), ("ann", 7)]).key_by(lambda order: order[0])
    >>> sorted(orders.max(1).execute_and_collect())
    [('ann', 10), ('ann', 10), ('bob', 5)]
    """

    def __init__(self, origin: DataStream, selector: Callable[[Any], Any], key_type: Any = None) -> None:
        exchange = Exchange(ExchangeKind.HASH, selector, key_type="" if key_type is None else str(key_type))
        super().__init__(origin._environment, origin._ports, exchange)
        self._origin = DataStream(origin._environment, origin._ports)
        self._selector = selector
        self._key_type = key_type

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: Any = None) -> DataStream:
        """Transform each element. A function object can keep state per key.

        :param func: the function that returns one result for an element
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        return self._then("Map", KeyedCall(as_function(func, MapFunction, "map"), ("map",)), output_type)

    def flat_map(self, func: Callable[[Any], Any] | FlatMapFunction, output_type: Any = None) -> DataStream:
        """Transform each element into any number of results. A function object can keep state per key.

        :param func: the function that yields results, or returns a list of them
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        return self._then("Flat Map", KeyedCall(as_function(func, FlatMapFunction, "flat_map"), ("flat_map",)), output_type)

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataStream:
        """Keep the elements that satisfy a predicate. A function object can keep state per key.

        :param func: the function that returns True for an element to keep
        :returns: the elements that are kept
        """
        return self._then("Filter", KeyedCall(as_function(func, FilterFunction, "filter"), ("filter",)), self._output_type())

    def process(self, func: ProcessFunction | KeyedProcessFunction, output_type: Any = None) -> DataStream:
        """Process each element with state and timers of its key.

        :param func: the function object
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        function = checked_function(func, ProcessFunction, "process", KeyedProcessFunction)
        return self._then("Keyed Process", KeyedProcess(function), output_type)

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataStream:
        """Combine the elements of each key. Each update is a result; in batch mode, only the last one is.

        :param func: the function that combines two values into one
        :returns: the results
        """
        return self._then("Reduce", Reduce(as_function(func, ReduceFunction, "reduce")), self._output_type())

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        """Sum a field over the elements of each key. The other fields are those of the first element of the key.

        :param position_to_sum: number or name of the field
        :returns: the sums
        """
        return self._aggregate("Sum", summing(position_to_sum))

    def min(self, position_to_min: int | str = 0) -> DataStream:
        """Return the smallest value of a field for each key. The other fields are those of the first element of the key.

        :param position_to_min: number or name of the field
        :returns: the minima
        """
        return self._aggregate("Min", extreme(position_to_min, operator.lt))

    def max(self, position_to_max: int | str = 0) -> DataStream:
        """Return the largest value of a field for each key. The other fields are those of the first element of the key.

        :param position_to_max: number or name of the field
        :returns: the maxima
        """
        return self._aggregate("Max", extreme(position_to_max, operator.gt))

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        """Return the element with the smallest value of a field for each key. The first of equal elements wins.

        :param position_to_min_by: number or name of the field
        :returns: the elements
        """
        return self._aggregate("Min By", extreme_element(position_to_min_by, operator.lt))

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        """Return the element with the largest value of a field for each key. The first of equal elements wins.

        :param position_to_max_by: number or name of the field
        :returns: the elements
        """
        return self._aggregate("Max By", extreme_element(position_to_max_by, operator.gt))

    def _aggregate(self, name: str, reduce: Callable[[Any, Any], Any]) -> DataStream:
        return self._then(name, Reduce(CallableFunction(reduce)), self._output_type())

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream[DataStream]:
        """Assign the elements of each key to windows.

        :param window_assigner: the assigner that selects the windows of an element
        :returns: the windows
        """
        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream[DataStream]:
        """Assign the elements of each key to windows of a fixed number of elements. A window that is not full never fires.

        :param size: number of elements
        :param slide: number of elements from one window to the next, 0 for windows that do not overlap
        :returns: the windows
        """
        return self.window(_make_count_assigner(size, slide))

    def interval_join(self, other: KeyedStream) -> IntervalJoinedStreams[DataStream]:
        """Join the elements of this stream with those of another whose times are near to theirs.

        :param other: the other stream, with keys
        :returns: both, of which :meth:`~IntervalJoinedStreams.between` sets the interval
        """
        if not isinstance(other, KeyedStream):
            raise StreamProgramError(
                f"interval_join() needs a stream with keys, and was given {other!r}: put key_by(...) before it."
            )
        return IntervalJoinedStreams(self, other)

    # operations of the stream without keys

    def join(self, other: DataStream) -> JoinedStreams[DataStream]:
        """Join by other keys than those of this stream."""
        return self._origin.join(other)

    def co_group(self, other: DataStream) -> CoGroupedStreams[DataStream]:
        """Group by other keys than those of this stream."""
        return self._origin.co_group(other)

    def key_by(self, key_selector: Callable[[Any], Any] | KeySelector, key_type: Any = None) -> KeyedStream:
        """Partition the elements by other keys."""
        return self._origin.key_by(key_selector, key_type)

    def union(self, *streams: DataStream) -> DataStream:
        """Return the union of this stream and others, without keys."""
        return self._origin.union(*[each._origin if isinstance(each, KeyedStream) else each for each in streams])

    def project(self, *field_indexes: int) -> DataStream:
        """Keep some fields of tuples."""
        return self._origin.project(*field_indexes)

    def assign_timestamps_and_watermarks(self, watermark_strategy: TimestampsAndWatermarks) -> DataStream:
        """Refuse, because keys do not survive it."""
        self._refuse("assign_timestamps_and_watermarks", "call it before key_by()")

    def execute_and_collect(self, job_execution_name: str | None = None, limit: int | None = None) -> CloseableIterator | list[Any]:
        """Run the program and bring the elements to this process, each as ``Row(f0=key, f1=element)``."""
        selector = self._selector
        return self._origin.map(lambda value: Row(f0=selector(value), f1=value)).execute_and_collect(job_execution_name, limit)

    @property
    def _is_keyed(self) -> bool:
        return True

    def _own_node(self, method: str) -> Node:
        raise StreamProgramError(
            f"{method}() belongs to an operator: call it on the stream before key_by(), or on what process() and the like return."
        )

    def _apply_exchange(self, exchange: Exchange) -> DataStream:
        self._refuse(exchange.kind.value.lower(), "elements with the same key stay together; call it before key_by()")

    def _refuse(self, method: str, why: str) -> NoReturn:
        raise StreamProgramError(f"{method} is not possible on a stream with keys: {why}.")

    def _end(self, name: str, spec: OperatorSpec, *, non_parallel: bool = False) -> DataStreamSink:
        return self._origin._end(name, spec, non_parallel=non_parallel)


def _check_stream(stream: Any, method: str) -> DataStream:
    if not isinstance(stream, DataStream):
        raise StreamProgramError(f"{method}() needs a stream, and was given {stream!r}.")
    return stream


def _same_key(value: Any) -> int:  # noqa: ARG001
    return 0


def _make_count_assigner(size: int, slide: int) -> WindowAssigner[Any, Any]:
    return CountSlidingWindowAssigner(size, slide) if slide else CountTumblingWindowAssigner(size)


def _adapt_sink(sink: Sink, type_info: Any) -> Sink:
    return sink.for_type(type_info) if isinstance(sink, connectors.Sink) else sink
