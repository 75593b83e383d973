"""Checkpoints of a pipeline, their copies, and pipelines that stand by with them."""
