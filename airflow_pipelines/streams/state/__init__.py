"""Keyed state: descriptors, views of the state of the current key, and the pages in which it is stored."""
