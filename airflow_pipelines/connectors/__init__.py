"""Transports and formats: how rows come into tables and changes of views go out. Of the engine they know changes and deltas."""
