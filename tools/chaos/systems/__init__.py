"""Systems that are sources and targets of the pipelines in ``tools.chaos.pairs``: a file for each."""
