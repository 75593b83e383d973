"""Reads the statements of a program one by one: tables, views, indexes, declarations of views."""
