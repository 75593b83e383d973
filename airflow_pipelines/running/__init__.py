"""The command ``airflow-pipelines run``: creates a pipeline from a program, starts it and follows it."""
