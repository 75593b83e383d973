"""Tests of what connectors and stream programs have in common of Kafka."""
