"""Long-lived, stateful Spark pipelines as first-class things in Airflow."""
