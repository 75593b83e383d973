"""Passes over queries and stages, a module each."""
