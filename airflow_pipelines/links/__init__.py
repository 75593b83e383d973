"""Links from a task in Airflow to its pipeline."""
