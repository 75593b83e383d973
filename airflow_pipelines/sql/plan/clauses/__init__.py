"""The planners of a query's clauses, one module per clause."""
