"""The SQL layer, without Spark: the parser of programs, the rewrite of their queries to Spark SQL and the incremental planner.

Its folders import in one direction: ``program`` (statements, names, order of views) uses ``rewrite`` (text to Spark SQL),
which uses the analyzer of ``plan`` (queries to stages). ``values`` and ``syntax`` are below all of them.
"""
