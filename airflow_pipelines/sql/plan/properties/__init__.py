"""Properties of relations that the planner derives: append-only, empty, monotone, waterlines and retention."""
