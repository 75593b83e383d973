"""The syntax of SQL texts: tokens, dialect, types, clauses and their positions. It does not depend on a program's declarations."""
