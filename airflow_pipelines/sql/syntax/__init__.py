"""The syntax of SQL texts: tokens, dialect, types, clauses and their places. Knows nothing of what a program declares."""
