"""Queries that leave a choice to Spark, made to have one answer."""
