"""What the page says of each figure of connectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TITLES: Final[Mapping[str, Mapping[str, str]]] = {
    "kafka": {
        "connectors_kafka_records_per_s": "a pipeline from the topic to the aggregate",
        "connectors.kafka.structured_per_s": "Spark Structured Streaming over the same topic",
        "connectors_kafka_vs_structured": "ours / Structured Streaming, median of turns",
        "connectors.kafka.read_alone_per_s": "`kafka_input` alone, records to columns",
    },
    "json": {
        "connectors_json_rows_per_s": "ours, a document a message (`kafka_input`)",
        "connectors.json.ours_lines_per_s": "ours, a document a line (`file_input`)",
        "connectors.json.pyarrow_per_s": "pyarrow's reader alone, and casts",
        "connectors.json.orjson_per_s": "orjson, and columns from Python's objects",
        "connectors.json.spark_per_s": "Spark's `from_json`, one task",
    },
    "files": {
        "connectors.parquet.local_s": "`file_input` from the disk",
        "connectors.parquet.s3_s": "`s3_input`",
        "connectors_parquet_s3_over_local": "S3 / disk, median of turns",
        "connectors.parquet.local_cpu_s": "processor time of `file_input` from the disk",
        "connectors.parquet.s3_cpu_s": "processor time of `s3_input`",
        "connectors.parquet.s3_pyarrow_s": "pyarrow alone from S3, rows to columns",
        "connectors.parquet.s3_bytes_pyarrow_s": "pyarrow's client of S3, the bytes only",
        "connectors.parquet.s3_bytes_s3fs_s": "s3fs, the bytes only",
        "connectors.parquet.s3_pyarrow_cpu_s": "processor time of pyarrow alone from S3, rows to columns",
        "connectors.parquet.s3_bytes_pyarrow_cpu_s": "processor time of pyarrow's client, the bytes only",
        "connectors.parquet.s3_bytes_s3fs_cpu_s": "processor time of s3fs, the bytes only",
        "connectors.csv.rows_per_s": "CSV from the disk",
        "connectors.csv.gzip_over_plain": "CSV with gzip / without",
        "connectors.s3.small_objects_per_s": "objects of one row",
    },
    "postgres": {
        "connectors.postgres.psql_copy_s": "`psql \\copy` to a file",
        "connectors.postgres.csv_s": "`file_input` of that file",
        "connectors.postgres.query_s": "`postgres_input`",
        "connectors_postgres_query_against_copy_and_csv": "copy and `file_input` / `postgres_input`",
        "connectors.postgres.cdc_first_rows_s": "`postgres_cdc_input`: slot, copy to a temporary file, all rows",
        "connectors.postgres.cdc_changes_per_s": "`postgres_cdc_input`: updates of one row each, 1,000 in a transaction",
        "connectors.postgres.written_rows_per_s": "`postgres_output`: a step of 1,000,000 new rows",
        "connectors.postgres.small_step_ms": "`postgres_output`: a step of ten updates",
    },
    "delta": {
        "connectors.delta.merged.bare_merge_s": "a `MERGE` by `deltalake` alone",
        "connectors.delta.merged.step_s": "a step of `delta_table_output` with `merged`",
        "connectors_delta_merged_over_bare_merge": "ours / `MERGE`",
        "connectors.delta.merged.load_rows_per_s": "`delta_table_output`: a first step of 10,000,000 rows",
        "connectors.delta.snapshot.rows_per_s": "`delta_table_input`: a snapshot of 10,000,000 rows",
        "connectors.delta.snapshot.ratio": "that / what `deltalake` takes to load it",
    },
}
"""By system, the names of figures and what they are."""
