"""Blocks of a query, a join of sources with conditions each, and what they become: outer joins and aggregates."""
