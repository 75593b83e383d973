"""The Avro format: files that contain their schema, and messages whose schema is in a registry or in the format's options."""
