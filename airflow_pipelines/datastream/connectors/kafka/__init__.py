"""Kafka: a source and a sink, and the older classes for them."""

from airflow_pipelines.datastream.connectors.kafka.offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from airflow_pipelines.datastream.connectors.kafka.older import KafkaConsumer, KafkaProducer, Semantic
from airflow_pipelines.datastream.connectors.kafka.records import ConsumerRecord, KafkaRecordDeserializationSchema
from airflow_pipelines.datastream.connectors.kafka.serialization import (
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
    ProducerRecord,
)
from airflow_pipelines.datastream.connectors.kafka.sink import DeliveryGuarantee, KafkaSink, KafkaSinkBuilder
from airflow_pipelines.datastream.connectors.kafka.source import KafkaSource, KafkaSourceBuilder

__all__ = [
    "ConsumerRecord",
    "DeliveryGuarantee",
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
    "ProducerRecord",
    "Semantic",
]
