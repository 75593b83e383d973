"""Transports and formats, by which rows enter tables and changes of views leave. Of the engine, they know changes and deltas."""
