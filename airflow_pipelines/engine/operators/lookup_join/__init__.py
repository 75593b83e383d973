"""Deltas of joins with large relations: the rows that a small delta matches are looked up."""
