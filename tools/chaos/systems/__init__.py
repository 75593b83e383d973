"""The systems that are sources and targets of the pipelines in ``tools.chaos.pairs``: one file for each."""
