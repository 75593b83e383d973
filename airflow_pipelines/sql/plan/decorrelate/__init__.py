"""Decorrelation of subqueries: EXISTS, IN, scalar and lateral subqueries become joins and keyed stages."""
