"""Stream programs: streams of elements, transformed by functions with state and timers."""

from airflow_pipelines.datastream.async_data_stream import AsyncDataStream
from airflow_pipelines.datastream.checkpoint_config import CheckpointConfig, ExternalizedCheckpointCleanup
from airflow_pipelines.datastream.checkpoint_storage import (
    CheckpointStorage,
    CustomCheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from airflow_pipelines.datastream.checkpointing_mode import CheckpointingMode
from airflow_pipelines.datastream.collecting import CloseableIterator
from airflow_pipelines.datastream.common.configuration import Configuration
from airflow_pipelines.datastream.common.row import Row, RowKind
from airflow_pipelines.datastream.common.time import Duration, Time
from airflow_pipelines.datastream.common.typeinfo import Types
from airflow_pipelines.datastream.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from airflow_pipelines.datastream.connected_streams import BroadcastConnectedStream, BroadcastStream, ConnectedStreams
from airflow_pipelines.datastream.data_stream import DataStream, KeyedStream
from airflow_pipelines.datastream.data_stream_sink import DataStreamSink
from airflow_pipelines.datastream.environment import StreamExecutionEnvironment
from airflow_pipelines.datastream.execution_mode import RuntimeExecutionMode
from airflow_pipelines.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatJoinFunction,
    FlatMapFunction,
    JoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
    TimerService,
    WindowFunction,
)
from airflow_pipelines.datastream.joined_streams import (
    CoGroupedStreams,
    IntervalJoined,
    IntervalJoinedStreams,
    JoinedStreams,
    JoinedWindows,
)
from airflow_pipelines.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from airflow_pipelines.datastream.state_backend import (
    CustomStateBackend,
    EmbeddedRocksDBStateBackend,
    FsStateBackend,
    HashMapStateBackend,
    MemoryStateBackend,
    PredefinedOptions,
    RocksDBStateBackend,
    StateBackend,
)
from airflow_pipelines.datastream.time_characteristic import TimeCharacteristic
from airflow_pipelines.datastream.time_domain import TimeDomain
from airflow_pipelines.datastream.window import (
    CountWindow,
    MergingWindowAssigner,
    TimeWindow,
    Trigger,
    TriggerResult,
    Window,
    WindowAssigner,
)
from airflow_pipelines.datastream.windowed_stream import AllWindowedStream, WindowedStream
from airflow_pipelines.streams.elements import OutputTag
from airflow_pipelines.streams.errors import StreamProgramError
from airflow_pipelines.streams.watermarks import WatermarkGenerator

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AllWindowedStream",
    "AsyncDataStream",
    "AsyncFunction",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastStream",
    "CheckpointConfig",
    "CheckpointStorage",
    "CheckpointingMode",
    "CloseableIterator",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoGroupedStreams",
    "CoMapFunction",
    "CoProcessFunction",
    "Configuration",
    "ConnectedStreams",
    "CountWindow",
    "CustomCheckpointStorage",
    "CustomStateBackend",
    "DataStream",
    "DataStreamSink",
    "Duration",
    "EmbeddedRocksDBStateBackend",
    "ExternalizedCheckpointCleanup",
    "FileSystemCheckpointStorage",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "FsStateBackend",
    "HashMapStateBackend",
    "IntervalJoined",
    "IntervalJoinedStreams",
    "JobManagerCheckpointStorage",
    "JoinFunction",
    "JoinedStreams",
    "JoinedWindows",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "MapFunction",
    "MemorySize",
    "MemoryStateBackend",
    "MergingWindowAssigner",
    "OutputTag",
    "Partitioner",
    "PredefinedOptions",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RocksDBStateBackend",
    "Row",
    "RowKind",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SinkFunction",
    "SlotSharingGroup",
    "SourceFunction",
    "StateBackend",
    "StreamExecutionEnvironment",
    "StreamProgramError",
    "Time",
    "TimeCharacteristic",
    "TimeDomain",
    "TimeWindow",
    "TimerService",
    "TimestampAssigner",
    "Trigger",
    "TriggerResult",
    "Types",
    "WatermarkGenerator",
    "WatermarkStrategy",
    "Window",
    "WindowAssigner",
    "WindowFunction",
    "WindowedStream",
]
