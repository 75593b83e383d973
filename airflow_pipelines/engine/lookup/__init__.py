"""Lookups of stored rows by their keys, where possible without a Spark job."""
