"""From a view's query to a plan: relational nodes, what is sure to be incremental, and how a delta is derived as SQL text."""
