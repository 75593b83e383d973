"""Reads SQL programs, rewrites their queries to Spark SQL and plans them incrementally. Knows no Spark.

Its folders import in one direction: ``program`` (statements, names, order of views) uses ``rewrite`` (text to Spark SQL),
which uses the analyzer of ``plan`` (queries to stages). ``values`` and ``syntax`` are below all of them.
"""
