"""Types, rows, times and settings that stream programs share."""

from airflow_pipelines.datastream.common.avro_row import (
    AvroNotAvailableError,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
)
from airflow_pipelines.datastream.common.completable_future import CompletableFuture
from airflow_pipelines.datastream.common.configuration import Configuration
from airflow_pipelines.datastream.common.csv_row import CsvRowDeserializationSchema, CsvRowSerializationSchema
from airflow_pipelines.datastream.common.execution_config import ExecutionConfig, ExecutionMode
from airflow_pipelines.datastream.common.job_client import JobClient
from airflow_pipelines.datastream.common.job_execution_result import JobExecutionResult
from airflow_pipelines.datastream.common.job_id import JobID
from airflow_pipelines.datastream.common.job_status import JobStatus
from airflow_pipelines.datastream.common.json_row import JsonRowDeserializationSchema, JsonRowSerializationSchema
from airflow_pipelines.datastream.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from airflow_pipelines.datastream.common.row import Row, RowKind
from airflow_pipelines.datastream.common.serialization import (
    DeserializationSchema,
    Encoder,
    SerializationError,
    SerializationSchema,
    SimpleStringSchema,
)
from airflow_pipelines.datastream.common.serializer import TypeSerializer
from airflow_pipelines.datastream.common.time import Duration, Instant, Time
from airflow_pipelines.datastream.common.type_information import TypeConversionError
from airflow_pipelines.datastream.common.typeinfo import RowTypeInfo, TupleTypeInfo, TypeInformation, Types
from airflow_pipelines.datastream.common.watermark_strategy import TimestampAssigner, WatermarkStrategy

__all__ = [
    "AvroNotAvailableError",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "CompletableFuture",
    "Configuration",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "ExecutionMode",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "JsonRowDeserializationSchema",
    "JsonRowSerializationSchema",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "RowTypeInfo",
    "SerializationError",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TimestampAssigner",
    "TupleTypeInfo",
    "TypeConversionError",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "WatermarkStrategy",
]
