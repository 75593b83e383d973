"""Inputs and outputs over files: listing them, fetching them ahead, decompressing, reading, writing, and tracking progress."""
