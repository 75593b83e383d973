"""Keyed state: descriptors, views of the state of the current key, and the rows in which it is stored."""
