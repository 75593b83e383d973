"""TODO-room-doc engine."""
