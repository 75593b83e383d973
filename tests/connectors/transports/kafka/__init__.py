"""Tests of the connectors of Kafka."""
