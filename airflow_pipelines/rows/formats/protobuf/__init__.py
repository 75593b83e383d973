"""The Protobuf format."""
