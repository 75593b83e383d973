"""Inputs from and outputs to topics of Kafka."""
