"""Stream programs in a host: their processes, and changes of their state."""
