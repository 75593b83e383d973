"""The transport ``nexmark``: the events of a benchmark for streams."""
