"""TODO-room-doc operators."""
