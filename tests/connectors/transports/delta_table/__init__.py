"""Delta tables as inputs and outputs."""
