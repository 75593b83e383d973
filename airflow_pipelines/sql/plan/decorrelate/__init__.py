"""Subqueries in expressions and lateral subqueries, as joins and as stages of their own."""
