"""The hook that connects Airflow connections with pipelines."""
