"""TODO-room-doc host."""
