"""The hook: Airflow connections to pipelines."""
