"""A Spark with Delta's own library: reads statements of SQL as lines of JSON, and answers each with its rows or its error."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def main(jars: Path) -> None:
    """Answer until there are no more statements.

    :param jars: the folder with Delta's jars
    """
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", ",".join(map(str, sorted(jars.glob("*.jar")))))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .getOrCreate()
    )
    for line in sys.stdin:
        answer: dict[str, list[Any]]
        try:
            answer = {"rows": [row.asDict(recursive=True) for row in spark.sql(json.loads(line)).collect()]}
        except Exception as error:  # noqa: BLE001  whoever asked is told
            answer = {"error": [str(error)]}
        print("answer " + json.dumps(answer, default=str), flush=True)  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
