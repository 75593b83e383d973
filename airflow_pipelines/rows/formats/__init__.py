"""Formats: the forms of rows as bytes. There is one module for each format; ``parsed``, ``values`` and ``columns`` are shared."""
