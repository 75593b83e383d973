"""Plans the clauses of a query into nodes, one module per clause."""
