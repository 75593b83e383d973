"""PostgreSQL: a query or a table whose changes are followed as an input, a table as an output."""
