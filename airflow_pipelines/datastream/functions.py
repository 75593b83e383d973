"""Functions for programs to derive from."""

from airflow_pipelines.datastream.function_sink import SinkContext, SinkFunction
from airflow_pipelines.streams.async_functions import AsyncFunction
from airflow_pipelines.streams.function_source import SourceContext, SourceFunction
from airflow_pipelines.streams.functions import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    Function,
    KeySelector,
    MapFunction,
    NullByteKeySelector,
    Partitioner,
    ReduceFunction,
)
from airflow_pipelines.streams.join_functions import CoGroupFunction, FlatJoinFunction, JoinFunction, ProcessJoinFunction
from airflow_pipelines.streams.process_functions import (
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    TimerService,
)
from airflow_pipelines.streams.runtime import RuntimeContext
from airflow_pipelines.streams.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AsyncFunction",
    "BroadcastProcessFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "Function",
    "JoinFunction",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "MapFunction",
    "NullByteKeySelector",
    "Partitioner",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "SinkContext",
    "SinkFunction",
    "SourceContext",
    "SourceFunction",
    "TimerService",
    "WindowFunction",
]
