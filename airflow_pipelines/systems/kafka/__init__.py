"""Kafka: its clients, topics, records and transactions, and the problems with them."""
