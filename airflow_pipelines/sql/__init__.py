"""Reads SQL programs, rewrites their queries to Spark SQL and plans them incrementally. Knows no Spark."""
