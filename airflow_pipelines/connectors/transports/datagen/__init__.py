"""The transport ``datagen``: rows that are made up."""
