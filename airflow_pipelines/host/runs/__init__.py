"""Runs of pipelines: opening, the loop of steps, checkpoints, requests, and the fleet of a host."""
