"""The reader of SQL programs and requests: statements, names, functions, the order of views, fingerprints. It plans nothing."""
