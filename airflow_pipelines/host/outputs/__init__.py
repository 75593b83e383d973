"""Outputs: changes of views go to connectors and listeners."""
