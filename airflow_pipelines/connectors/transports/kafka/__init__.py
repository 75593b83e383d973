"""Kafka: topics as inputs and outputs."""
