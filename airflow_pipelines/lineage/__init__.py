"""Lineage: what pipelines read and write, for those who collect that."""
