"""Windows: the grouping of elements, and the times at which a window gives its result."""
