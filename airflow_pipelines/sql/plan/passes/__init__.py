"""The passes of the planner, one module each. :mod:`airflow_pipelines.sql.plan.pipeline` has their order."""
