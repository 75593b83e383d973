"""Outputs: changes of views go to connectors and to those who listen."""
