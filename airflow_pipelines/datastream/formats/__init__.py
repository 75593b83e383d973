"""Formats of files of stream programs: CSV, Parquet, ORC and Avro."""
