"""Operators: each evaluates one kind of plan node, step by step."""
