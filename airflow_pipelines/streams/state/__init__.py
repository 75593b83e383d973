"""State by key: descriptors, views on the state of the current key, and the pages in which it is kept."""
