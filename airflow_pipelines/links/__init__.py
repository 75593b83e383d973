"""Links: from a task in Airflow to the pipeline that it is about."""
