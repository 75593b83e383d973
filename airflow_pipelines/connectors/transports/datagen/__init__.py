"""The transport ``datagen``: generated rows."""
