"""Avro: files that hold their schema, and messages whose schema is in a registry or in the format's options."""
