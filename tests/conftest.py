"""Shared fixtures: one SparkSession, one warm host and one service for each process of a test run."""

import gc
import os

from hypothesis import HealthCheck, settings

from airflow_pipelines.common.class_archive import java_options

# The JVMs of tests live for minutes and run most queries once or twice, so the time of the second compiler never pays off. Without
# it Java reserves a fifth of its usual code cache, which a quarter of the suite fills: then Java finds and compiles the same code
# again and again, and Spark hangs. Concurrent garbage collection takes a processor that tests need. The stack is that of hosts.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xss4m"
os.environ.setdefault("JDK_JAVA_OPTIONS", _JAVA)
# Not for all of Java: a JVM with other jars would read the archive in vain.
os.environ.setdefault("SPARK_SUBMIT_OPTS", java_options())

# Hypothesis measures by the clock on the wall, so that other work of the machine would make tests fail. In a clean checkout the
# first test with text also makes its tables of characters, which takes a second and counts as drawing.
settings.register_profile("any machine", parent=settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

pytest_plugins = [
    "tests.durations",
    "tests.tiers",
    "tests.fixtures.airflow",
    "tests.fixtures.connector_package",
    "tests.fixtures.postgresql",
    "tests.fixtures.redis",
    "tests.fixtures.spark",
    "tests.fixtures.host",
    "tests.fixtures.kafka",
    "tests.fixtures.s3",
    "tests.fixtures.schema_registry",
    "tests.fixtures.service",
    "tests.fixtures.sdk",
]


# What is imported stays, so the garbage collector would look through it again and again, in vain: a fifth of the time of imports.
gc.disable()


def pytest_collection_finish() -> None:
    """Keep the garbage collector from looking through the collected tests and their modules in each test."""
    gc.collect()
    gc.freeze()
    gc.enable()
