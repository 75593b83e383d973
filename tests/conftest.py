"""Shared fixtures: one SparkSession, one warm host and one service for the whole test session."""

pytest_plugins = [
    "tests.fixtures.airflow",
    "tests.fixtures.postgresql",
    "tests.fixtures.spark",
    "tests.fixtures.host",
    "tests.fixtures.service",
    "tests.fixtures.sdk",
]
