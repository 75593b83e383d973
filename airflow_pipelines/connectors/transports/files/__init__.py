"""Inputs over many files: finding them, fetching them ahead, unpacking them, and knowing how far each was read."""
