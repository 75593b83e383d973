"""The clauses of a query, a module each, planned into nodes."""
