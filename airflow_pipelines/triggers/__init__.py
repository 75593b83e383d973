"""TODO-room-doc triggers."""
