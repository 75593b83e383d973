"""TODO-room-doc hooks."""
