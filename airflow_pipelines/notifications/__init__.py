"""Notifiers, which Airflow calls when a task or a DAG run has failed."""
