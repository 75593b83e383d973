"""Stream programs in the engine: the process that runs one, and its state in traces."""
