"""Graphs of operators, as a program builds them, and the plans that the loop runs."""
