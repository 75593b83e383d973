"""Counters and times of a pipeline and its connectors."""
