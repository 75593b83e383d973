"""Blocks of a query (joins of sources with conditions), and their plans as outer joins and aggregates."""
