"""Operators: one class per kind, called by the loop with batches of elements."""
