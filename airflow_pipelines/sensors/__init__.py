"""Sensors: what a DAG waits for on pipelines."""
