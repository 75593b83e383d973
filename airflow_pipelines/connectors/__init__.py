"""Transports and formats: how rows come into tables and changes of views go out. Knows of the engine only what a change is."""
