"""PostgreSQL: inputs that read a query or follow the changes of a table, and an output that writes a table."""
