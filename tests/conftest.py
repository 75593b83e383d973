"""Shared fixtures: one SparkSession, one warm host and one service for the whole test session."""

import os

# The JVMs of tests live for minutes and run most queries once or twice, so the time of the second compiler never pays off. Without
# it Java reserves a fifth of its usual code cache, and Spark hangs when that is full. The stack is that of hosts.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -Xss4m")

pytest_plugins = [
    "tests.fast",
    "tests.fixtures.airflow",
    "tests.fixtures.postgresql",
    "tests.fixtures.spark",
    "tests.fixtures.host",
    "tests.fixtures.service",
    "tests.fixtures.sdk",
]
