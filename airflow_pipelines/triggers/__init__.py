"""Triggers: waiting on pipelines in the triggerer."""
