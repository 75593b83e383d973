"""Triggers that wait for pipelines in the triggerer."""
