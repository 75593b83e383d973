"""Databases: their URLs, engines of SQLAlchemy, and the errors of servers."""
