"""Readers of the statements of a program: tables, views, indexes, declarations of views."""
