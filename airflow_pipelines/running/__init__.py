"""``airflow-pipelines run``: makes a pipeline of a program, starts it and follows it."""
