"""The planner: decomposes a view's query into a plan of relational nodes whose deltas can be evaluated as SQL."""
