"""The Spark application of this process that connectors are compared with: what Spark itself does with the same data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from tools.maven import jars

_MEMORY: Final = "2g"


@contextmanager
def spark_with_kafka() -> Iterator[SparkSession]:
    """Yield a local application with all cores and Spark's own source for Kafka.

    It is set up as somebody who knows this machine would set it up.

    :raises tools.maven.NoJarsError: if that source cannot be had here
    """
    libraries = ",".join(str(jar) for jar in sorted(jars("spark_kafka").glob("*.jar")))
    builder = SparkSession.builder.master("local[*]").appName("benchmarks").config("spark.jars", libraries)
    settings = {
        "spark.driver.memory": _MEMORY,
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    # As many as there are cores: there are few groups.
    spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    try:
        yield spark
    finally:
        spark.stop()
