"""The planner, which decomposes a view's query into a plan of relational nodes whose deltas are evaluated as SQL.

:mod:`~airflow_pipelines.sql.plan.recursion` is the entry point, :mod:`~airflow_pipelines.sql.plan.planner` plans one query, and
:mod:`~airflow_pipelines.sql.plan.pipeline` lists the passes before and after. Below them are ``passes``, ``clauses``,
``decorrelate``, ``blocks``, ``properties`` and, at the bottom, ``ir``: the nodes that all others make and read.
"""
