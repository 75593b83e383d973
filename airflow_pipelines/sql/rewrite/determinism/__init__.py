"""Rewrites that remove nondeterminism, one module per kind of clause."""
