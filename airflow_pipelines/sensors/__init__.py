"""TODO-room-doc sensors."""
