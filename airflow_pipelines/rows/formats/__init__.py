"""Formats: how rows are written as bytes. One module per format; what they share is in ``parsed``, ``values`` and ``columns``."""
