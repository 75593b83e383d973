"""Sources and sinks of streams."""

from airflow_pipelines.datastream.connectors.base import Sink, Source
from airflow_pipelines.datastream.connectors.file_buckets import BucketAssigner, BucketContext, OutputFileConfig, RollingPolicy
from airflow_pipelines.datastream.connectors.file_formats import BulkFormat, BulkWriter, BulkWriterFactory, StreamFormat
from airflow_pipelines.datastream.connectors.file_sink import FileSink, StreamingFileSink
from airflow_pipelines.datastream.connectors.file_source import (
    FileEnumeratorProvider,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
)
from airflow_pipelines.datastream.connectors.finished_files import FileCompactor, FileCompactStrategy
from airflow_pipelines.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from airflow_pipelines.datastream.connectors.jdbc_source import JdbcSource, JdbcSourceBuilder
from airflow_pipelines.datastream.connectors.kafka import (
    ConsumerRecord,
    DeliveryGuarantee,
    KafkaConsumer,
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaProducer,
    KafkaRecordDeserializationSchema,
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaSink,
    KafkaSinkBuilder,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
    KafkaTopicSelector,
    ProducerRecord,
    Semantic,
)
from airflow_pipelines.datastream.connectors.number_sequence import NumberSequenceSource
from airflow_pipelines.streams.sinks import SinkWriter

__all__ = [
    "BucketAssigner",
    "BucketContext",
    "BulkFormat",
    "BulkWriter",
    "BulkWriterFactory",
    "ConsumerRecord",
    "DeliveryGuarantee",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "JdbcConnectionOptions",
    "JdbcExecutionOptions",
    "JdbcSink",
    "JdbcSource",
    "JdbcSourceBuilder",
    "KafkaConsumer",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaProducer",
    "KafkaRecordDeserializationSchema",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "NumberSequenceSource",
    "OutputFileConfig",
    "ProducerRecord",
    "RollingPolicy",
    "Semantic",
    "Sink",
    "SinkWriter",
    "Source",
    "StreamFormat",
    "StreamingFileSink",
]
