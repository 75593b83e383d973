"""Lineage: the datasets that pipelines read and write, for tools that collect it."""
