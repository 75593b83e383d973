"""TODO-room-doc sql."""
