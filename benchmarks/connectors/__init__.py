"""Connectors: what moves rows in and out, next to the programs of the systems themselves."""
