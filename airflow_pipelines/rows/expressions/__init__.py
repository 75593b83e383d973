"""Expressions as trees, and their evaluation over Arrow."""
