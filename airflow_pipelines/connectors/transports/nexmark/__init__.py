"""The transport ``nexmark``: the events of a benchmark of streams."""
