"""TODO-room-doc connectors."""
