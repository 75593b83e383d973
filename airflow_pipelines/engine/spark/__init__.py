"""The only package that uses private parts of PySpark: sessions, prepared queries, plans, analysis, collection."""
