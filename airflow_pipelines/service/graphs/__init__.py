"""The graphs of pipelines as pictures."""
