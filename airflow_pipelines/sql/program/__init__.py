"""Reads a SQL program or request: statements, names, functions, the order of views, fingerprints. Nothing is planned yet."""
