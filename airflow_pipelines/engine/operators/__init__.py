"""Operators: how the nodes of a plan are computed, step by step, on Spark."""
