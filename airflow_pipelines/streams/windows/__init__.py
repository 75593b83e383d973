"""Windows: which elements belong together, and when a window gives its result."""
