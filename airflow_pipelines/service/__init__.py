"""TODO-room-doc service."""
