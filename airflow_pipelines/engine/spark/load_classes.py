"""A script that uses Spark as pipelines do, so that its JVM has loaded most classes that they need.

:mod:`airflow_pipelines.common.class_archive` runs it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from airflow_pipelines.engine.spark.internals import end_jvm

END_S: Final = 120.0
"""The time limit, in seconds, for the JVM to write its archive and end.
:param folder: the folder for some rows
"""
_QUERIES: Final = (
    "SELECT s, COUNT(*), SUM(id), AVG(d), COLLECT_LIST(id) FROM saved GROUP BY s",
    "SELECT l.id, COUNT(r.id) FROM saved l LEFT JOIN given r ON l.id = r.id + 1 GROUP BY l.id",
    "SELECT id, ROW_NUMBER() OVER (PARTITION BY s ORDER BY id), LAG(id) OVER (PARTITION BY s ORDER BY d) FROM saved",
    "SELECT EXPLODE(a) x, v:a::INT, m['k'], XXHASH64(id, s), TO_JSON(STRUCT(id, s)) FROM saved",
    "SELECT DISTINCT s FROM saved WHERE ts > TIMESTAMP_NTZ'2019-01-01' AND s LIKE 'a%' ORDER BY s LIMIT 3",
    "SELECT * FROM saved WHERE id IN (SELECT id + 1 FROM given) OR EXISTS (SELECT 1 FROM given WHERE given.id = saved.id)",
    "SELECT id FROM given UNION ALL SELECT id FROM saved",
)


def load_classes(folder: Path) -> None:
    """Use Spark as pipelines do, and wait until its JVM has ended.

    :param folder: the folder for some rows
    """
    builder = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    )
    spark = builder.getOrCreate()
    rows = pa.table({"id": [1, 2, 3], "s": ["a", "b", None], "d": [1.5, 2.5, 3.5]})
    spark.createDataFrame(rows).createOrReplaceTempView("given")
    spark.sql(
        "SELECT *, PARSE_JSON('{\"a\": 1}') v, MAP('k', 1) m, ARRAY(1, 2) a, TIMESTAMP_NTZ'2020-01-01 00:00:00' ts, "
        "CAST(id AS DECIMAL(20, 2)) c FROM given"
    ).write.parquet(str(folder / "rows"))
    spark.read.parquet(str(folder / "rows")).createOrReplaceTempView("saved")
    for query in _QUERIES:
        spark.sql(query).toArrow()
    spark.stop()
    end_jvm(END_S)


if __name__ == "__main__":
    load_classes(Path(sys.argv[1]))
