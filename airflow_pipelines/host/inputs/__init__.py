"""Inputs: rows of connectors and requests wait here for the next step."""
