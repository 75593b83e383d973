"""Pairs of streams that one function processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from airflow_pipelines.datastream.given_functions import checked_function
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.functions import CoFlatMapFunction, CoMapFunction, Function, KeySelector
from airflow_pipelines.streams.graph.nodes import Edge
from airflow_pipelines.streams.operators.base import OperatorSpec
from airflow_pipelines.streams.operators.broadcast import Broadcast, KeyedBroadcast
from airflow_pipelines.streams.operators.keyed_calls import CoCall, KeyedCall
from airflow_pipelines.streams.operators.process import KeyedProcess, Process
from airflow_pipelines.streams.process_functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from airflow_pipelines.streams.state.descriptors import MapStateDescriptor

S = TypeVar("S")


class Input(Protocol[S]):
    """The interface of a stream that an operator with two inputs needs."""

    @property
    def _is_keyed(self) -> bool: ...

    def get_execution_environment(self) -> Any:
        """Return the environment of the program."""
        ...

    def key_by(self, key_selector: Callable[[Any], Any] | KeySelector, key_type: Any = None) -> Input[S]:
        """Return the stream with keys."""
        ...

    def _edges(self, port: int = 0) -> list[Edge]: ...

    def _add_operator(self, name: str, spec: OperatorSpec, edges: list[Edge], output_type: Any, **settings: Any) -> S: ...


class ConnectedStreams(Generic[S]):
    """Two streams that one function processes. There is no order between their elements.

    :param stream1: the first stream
    :param stream2: the second stream

    >>> from airflow_pipelines.datastream import CoMapFunction, StreamExecutionEnvironment
    >>> class Change(CoMapFunction):
    ...     def map1(self, deposit):
    ...         return deposit
    ...     def map2(self, withdrawal):
    ...         return -withdrawal
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> deposits, withdrawals = env.from_collection([100, 50]), env.from_collection([30])
    >>> sorted(deposits.connect(withdrawals).map(Change()).execute_and_collect())
    [-30, 50, 100]
    """

    def __init__(self, stream1: Input[S], stream2: Input[S]) -> None:
        if stream1.get_execution_environment() is not stream2.get_execution_environment():
            raise StreamProgramError("connect() of streams of two environments: a program has one.")
        self.stream1 = stream1
        self.stream2 = stream2

    def key_by(
        self,
        key_selector1: Callable[[Any], Any] | KeySelector,
        key_selector2: Callable[[Any], Any] | KeySelector,
        key_type: Any = None,
    ) -> ConnectedStreams[S]:
        """Partition both streams by key, so that elements with the same key meet.

        :param key_selector1: the function that returns the key of an element of the first stream
        :param key_selector2: the function that returns the key of an element of the second stream
        :param key_type: declared type of the keys; optional
        :returns: the streams with keys
        """
        return ConnectedStreams(self.stream1.key_by(key_selector1, key_type), self.stream2.key_by(key_selector2, key_type))

    def map(self, func: CoMapFunction, output_type: Any = None) -> S:
        """Transform each element.

        :param func: the function that returns one result for an element of either stream; None drops the element
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        return self._call("Co-Map", checked_function(func, CoMapFunction, "map"), ("map1", "map2"), output_type)

    def flat_map(self, func: CoFlatMapFunction, output_type: Any = None) -> S:
        """Transform each element into any number of results.

        :param func: the function that yields results for an element of either stream
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        function = checked_function(func, CoFlatMapFunction, "flat_map")
        return self._call("Co-Flat Map", function, ("flat_map1", "flat_map2"), output_type)

    def process(self, func: CoProcessFunction | KeyedCoProcessFunction, output_type: Any = None) -> S:
        """Process each element with its timestamp and the watermark and, on streams with keys, with state and timers.

        :param func: the function object
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        methods = ("process_element1", "process_element2")
        if self._is_keyed:
            function = checked_function(func, CoProcessFunction, "process", KeyedCoProcessFunction)
            return self._add("Keyed Co-Process", KeyedProcess(function, methods), output_type)
        if isinstance(func, KeyedCoProcessFunction):
            raise StreamProgramError(
                "process() on streams without keys was given a KeyedCoProcessFunction: put key_by(..., ...) before it."
            )
        return self._add("Co-Process", Process(checked_function(func, CoProcessFunction, "process"), methods), output_type)

    @property
    def _is_keyed(self) -> bool:
        """True if both streams have keys.

        :raises StreamProgramError: if only one of them has
        """
        if self.stream1._is_keyed != self.stream2._is_keyed:
            raise StreamProgramError(
                "connect() of a stream with keys and one without: give both keys, before it or by key_by(..., ...) after it, or"
                " broadcast(...) the second one."
            )
        return self.stream1._is_keyed

    def _call(self, name: str, function: Function, methods: tuple[str, ...], output_type: Any) -> S:
        return self._add(name, (KeyedCall if self._is_keyed else CoCall)(function, methods), output_type)

    def _add(self, name: str, spec: OperatorSpec, output_type: Any) -> S:
        return self.stream1._add_operator(name, spec, self.stream1._edges(0) + self.stream2._edges(1), output_type)


class BroadcastStream(Generic[S]):
    """A stream whose elements all go to every task, to change states that all tasks share.

    :param stream: the stream
    :param descriptors: the descriptors of the states

    >>> from airflow_pipelines.datastream import StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.state import MapStateDescriptor
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> rates = env.from_collection([("EUR", 1.25)]).broadcast(MapStateDescriptor("rates"))
    >>> [descriptor.name for descriptor in rates.descriptors]
    ['rates']
    """

    def __init__(self, stream: Input[S], descriptors: tuple[MapStateDescriptor, ...]) -> None:
        for descriptor in descriptors:
            if not isinstance(descriptor, MapStateDescriptor):
                raise StreamProgramError(f"broadcast() needs a MapStateDescriptor, and was given {descriptor!r}.")
        self.stream = stream
        self.descriptors = descriptors


class BroadcastConnectedStream(Generic[S]):
    """A stream and a broadcast stream.

    :param stream: the stream, with keys or without
    :param broadcast: the broadcast stream

    >>> from airflow_pipelines.datastream import BroadcastProcessFunction, StreamExecutionEnvironment
    >>> from airflow_pipelines.datastream.state import MapStateDescriptor
    >>> LIMITS = MapStateDescriptor("limits")
    >>> class Report(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield f"paid {value}"
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(LIMITS).put("payment", value)
    ...         yield f"the limit is {ctx.get_broadcast_state(LIMITS).get('payment')}"
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> connected = env.from_collection([20]).connect(env.from_collection([500]).broadcast(LIMITS))
    >>> sorted(connected.process(Report()).execute_and_collect())
    ['paid 20', 'the limit is 500']
    """

    def __init__(self, stream: Input[S], broadcast: BroadcastStream[S]) -> None:
        self._stream = stream
        self._broadcast = broadcast

    def process(self, func: BroadcastProcessFunction | KeyedBroadcastProcessFunction, output_type: Any = None) -> S:
        """Process the elements of both streams.

        :param func: the function object: for a stream with keys a :class:`KeyedBroadcastProcessFunction`
        :param output_type: declared type of the results; optional
        :returns: the results
        """
        descriptors = self._broadcast.descriptors
        edges = self._stream._edges(0) + self._broadcast.stream._edges(1)
        if self._stream._is_keyed:
            keyed = checked_function(func, KeyedBroadcastProcessFunction, "process")
            return self._stream._add_operator("Keyed Broadcast Process", KeyedBroadcast(keyed, descriptors), edges, output_type)
        function = checked_function(func, BroadcastProcessFunction, "process")
        return self._stream._add_operator("Broadcast Process", Broadcast(function, descriptors), edges, output_type)
