"""Graphs of operators: what a program builds, what the loop runs."""
