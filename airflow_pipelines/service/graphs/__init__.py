"""Graphs of pipelines as pictures."""
